// A WebSocket client: what it is asked for on the command line, one object of
// JSON for each thing that happened on standard output.
const fs = require('fs');
const crypto = require('crypto');
const WebSocket = require('ws');
const { HttpsProxyAgent } = require('https-proxy-agent');

const [url, proxy, ca, what] = process.argv.slice(2);
const say = (o) => console.log(JSON.stringify(o));
const ws = new WebSocket(url, ['echo', 'token-of-the-box'], {
  agent: new HttpsProxyAgent(proxy), ca: fs.readFileSync(ca), handshakeTimeout: 300000, headers: { Authorization: 'Bearer placeholder' },
});
const next = () => new Promise((resolve) => ws.once('message', (data, binary) => resolve({ data, binary })));
setTimeout(() => { say({ event: 'timeout' }); process.exit(1); }, 300000).unref();

ws.on('error', (e) => say({ event: 'error', text: String(e.message) }));
ws.on('unexpected-response', (req, res) => {
  let body = '';
  res.on('data', (d) => { body += d; });
  res.on('end', () => { say({ event: 'refused', status: res.statusCode, text: body }); process.exit(0); });
});
ws.on('close', (code, reason) => say({ event: 'close', code, text: String(reason) }));
ws.on('open', async () => {
  say({ event: 'open', text: ws.protocol + '|' + ws.extensions });
  if (what === 'messages') {
    for (const [name, message, options] of [
      ['text', 'grüße, 世界', {}],
      ['binary', crypto.randomBytes(1000), {}],
      ['empty', '', {}],
      ['large', crypto.randomBytes(1 << 20), {}],
      ['large text', 'é'.repeat(1 << 19), {}],
    ]) {
      const back = next();
      ws.send(message, options);
      const { data, binary } = await back;
      say({ event: 'echo', text: name, ok: Buffer.from(message).equals(data) && binary === Buffer.isBuffer(message) });
    }
    let back = next();
    for (let i = 0; i < 10; i++) ws.send('piece ' + i + ' é; ', { fin: i === 9 });
    say({ event: 'echo', text: 'fragments', ok: String((await back).data) === [...Array(10).keys()].map((i) => 'piece ' + i + ' é; ').join('') });
    const pong = new Promise((resolve) => ws.once('pong', resolve));
    ws.ping('are you there');
    say({ event: 'echo', text: 'pong', ok: String(await pong) === 'are you there' });
    const ping = new Promise((resolve) => ws.once('ping', resolve));
    ws.send('please ping');
    say({ event: 'echo', text: 'ping', ok: (await ping).length > 0 });
    ws.close(4001, 'by the client');
  } else if (what === 'die') {
    process.exit(0); // without a word
  } else {
    ws.on('message', (data) => {
      say({ event: 'message', text: String(data) });
      ws.close();
    });
    ws.send(what);
  }
});
