// Stripe's own library makes the requests that its document describes. Every response of the stub is {}.
import Stripe from 'stripe';

const stripe = new Stripe('sk_test_placeholder', { maxNetworkRetries: 0, telemetry: false });
const calls = {
  'customers.create': () => stripe.customers.create({ email: 'a@b.example', metadata: { plan: 'x y' },
    address: { city: 'Bern', line1: 'Gasse 1' }, preferred_locales: ['de', 'fr'], expand: ['default_source'] }),
  'customers.list': () => stripe.customers.list({ created: { gte: 1, lt: 9 }, limit: 3, expand: ['data.subscriptions'] }),
  'customers.retrieve': () => stripe.customers.retrieve('cus_1', { expand: ['default_source'] }),
  'customers.update': () => stripe.customers.update('cus_1', { shipping: { name: 'n', address: { line1: 'l' } } }),
  'customers.del': () => stripe.customers.del('cus_1'),
  'charges.list': () => stripe.charges.list({ created: { gte: 1 }, limit: 3 }),
  'customers.createBalanceTransaction': () => stripe.customers.createBalanceTransaction('cus_1', { amount: -5,
    currency: 'chf', metadata: { order: '7' } }),
  'refunds.create': () => stripe.refunds.create({ charge: 'ch_1', amount: 5, reason: 'duplicate', metadata: { a: 'b&c' } }),
  'coupons.create': () => stripe.coupons.create({ duration: 'repeating', duration_in_months: 3, percent_off: 12.5,
    applies_to: { products: ['prod_1', 'prod_2'] } }),
  'events.list': () => stripe.events.list({ types: ['charge.failed', 'charge.succeeded'] }),
};
for (const [name, call] of Object.entries(calls)) {
  try {
    const { lastResponse } = await call(); // an error of the stub has no "error", by which the library knows one
    console.log(`${lastResponse.statusCode === 200 ? 'ok' : 'failed'} client ${name}`);
  } catch (error) {
    console.log(`failed client ${name}\n${error.stack}`);
  }
}
