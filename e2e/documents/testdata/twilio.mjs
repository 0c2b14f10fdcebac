// Twilio's own library makes the requests that its document describes. Every response of the stub is {}, of which the
// library makes no page, so the status counts.
import twilio from 'twilio';

const zeros = '00000000000000000000000000000000';
const account = `AC${zeros}`;
const call = `CA${zeros}`;
const client = twilio(account, 'placeholder');
const http = client.httpClient;
const send = http.request.bind(http);
let status;
http.request = async (options) => {
  const response = await send(options);
  status = response.statusCode;
  return response;
};
const api = client.api.v2010.accounts(account);
const calls = {
  'messages.create': () => api.messages.create({ to: '+15550001111', from: '+15550002222', body: 'a & b=c +ü',
    mediaUrl: ['https://a.example/1.png?x=1', 'https://a.example/2.png'] }),
  'messages.page': () => api.messages.page({ to: '+15550001111', pageSize: 5 }),
  'calls.create': () => api.calls.create({ to: '+15550001111', from: '+15550002222', url: 'https://a.example/x?y=1&z=2',
    statusCallbackEvent: ['initiated', 'answered'], timeout: 20, record: true }),
  'calls.page': () => api.calls.page({ status: 'in-progress', pageSize: 5 }),
  'balance.fetch': () => api.balance.fetch(),
  'usage.records.daily.page': () => api.usage.records.daily.page({ category: 'calls', includeSubaccounts: false }),
  'queues.create': () => api.queues.create({ friendlyName: 'desk', maxSize: 9 }),
  'participants.create': () => api.conferences('CF1').participants.create({ from: '+15550001111', to: 'client:a',
    muted: true, label: 'one two', statusCallbackEvent: ['ringing'] }),
  'available.local.page': () => api.availablePhoneNumbers('US').local.page({ areaCode: 510, smsEnabled: true }),
  'recordings.create': () => api.calls(call).recordings.create({ recordingChannels: 'dual', trim: 'do-not-trim' }),
  'account.fetch': () => api.fetch(),
  'message.fetch': () => api.messages(`SM${zeros}`).fetch(),
  'queue.update': () => api.queues(`QU${zeros}`).update({ friendlyName: 'front desk', maxSize: 7 }),
  'recording.remove': () => api.recordings(`RE${zeros}`).remove(),
};
for (const [name, make] of Object.entries(calls)) {
  status = 0;
  const error = await make().then(() => '', (e) => e.stack);
  console.log(status === 200 ? `ok client ${name}` : `failed client ${name}\n${status} ${error}`);
}
