// A unary call, a bidirectional stream, a status and a refusal, through the
// proxy of the environment. Messages are encoded by hand: two fields are all.
const fs = require('fs');
const grpc = require('@grpc/grpc-js');

const [target, ca, secret] = process.argv.slice(2);
const client = new grpc.Client(target, grpc.credentials.createSsl(fs.readFileSync(ca)));
const raw = (b) => b;
const hidden = 'Bearer ' + '*'.repeat(Number(secret));
const deadline = () => ({ deadline: Date.now() + 300000 });
const service = '/grpc.testing.TestService/';

function metadata() {
  const md = new grpc.Metadata();
  md.set('authorization', 'Bearer placeholder');
  md.set('x-grpc-test-echo-initial', 'initial');
  md.set('x-grpc-test-echo-trailing-bin', Buffer.from([0, 1, 0xff]));
  return md;
}

function check(ok, what) {
  if (!ok) {
    console.error('failed: ' + what);
    process.exit(1);
  }
}

function unary(method, message) {
  return new Promise((resolve) => {
    const seen = {};
    const call = client.makeUnaryRequest(service + method, raw, raw, message, metadata(), deadline(), (err, value) => {
      Object.assign(seen, { err, value });
    });
    call.on('metadata', (md) => { seen.initial = md; });
    call.on('status', (status) => { seen.status = status; setImmediate(() => resolve(seen)); });
  });
}

// StreamingOutputCallRequest{response_parameters: {size}} and
// SimpleRequest{response_status: {code, message}}.
const ask = (size) => Buffer.from([0x12, 0x02, 0x08, size]);
const failing = (code, text) => Buffer.concat([Buffer.from([0x3a, text.length + 4, 0x08, code, 0x12, text.length]), Buffer.from(text)]);

function bidi() {
  return new Promise((resolve) => {
    const stream = client.makeBidiStreamRequest(service + 'FullDuplexCall', raw, raw, metadata(), deadline());
    const sizes = [31, 9, 27, 58];
    let got = 0;
    stream.on('data', (message) => {
      // The next is asked for when this one is here: a ping-pong.
      check(message.includes(Buffer.alloc(sizes[got])), 'message ' + got);
      got++;
      if (got < sizes.length) stream.write(ask(sizes[got]));
      else stream.end();
    });
    stream.on('error', () => {});
    stream.on('status', (status) => resolve({ got, status }));
    stream.write(ask(sizes[0]));
  });
}

function cancelled() {
  return new Promise((resolve) => {
    const stream = client.makeBidiStreamRequest(service + 'FullDuplexCall', raw, raw, metadata(), deadline());
    stream.on('data', () => stream.cancel());
    stream.on('error', () => {});
    stream.on('status', resolve);
    stream.write(ask(5));
  });
}

(async () => {
  let r = await unary('UnaryCall', Buffer.from([0x10, 100]));
  check(!r.err && r.value.length > 100, 'unary: ' + r.err);
  check(r.initial.get('x-grpc-test-echo-initial')[0] === 'initial', 'initial metadata');
  check(r.status.metadata.get('x-grpc-test-echo-trailing-bin')[0].equals(Buffer.from([0, 1, 0xff])), 'trailing metadata');
  check(r.status.metadata.get('x-seen')[0] === hidden, 'the trailer is ' + r.status.metadata.get('x-seen'));

  r = await unary('UnaryCall', failing(9, 'said by the server'));
  check(r.status.code === grpc.status.FAILED_PRECONDITION && r.status.details === 'said by the server', 'a status: ' + r.status.code + ' ' + r.status.details);

  r = await bidi();
  check(r.got === 4 && r.status.code === grpc.status.OK && r.status.metadata.get('x-seen')[0] === hidden, 'bidi: ' + r.got + ', ' + r.status.details);

  r = await cancelled();
  check(r.code === grpc.status.CANCELLED, 'cancelled: ' + r.code);

  client.close();
  console.log('all is well');
})();
