// A tunnel as Node makes it without a package: the Host of the CONNECT is the
// proxy's own address. Prints the status and the body of one request in it.
const fs = require('fs');
const http = require('http');
const https = require('https');

const [target, path, proxy, ca] = process.argv.slice(2);
const { hostname, port, username, password } = new URL(proxy);
const connect = http.request({
  method: 'CONNECT', hostname, port, path: target + ':443',
  headers: { 'Proxy-Authorization': 'Basic ' + Buffer.from(username + ':' + password).toString('base64') },
});
const fail = (what) => (e) => { console.error(what, e.message); process.exit(1); };
connect.setTimeout(300000, () => connect.destroy(new Error('no answer')));
connect.on('error', fail('CONNECT:'));
connect.on('response', (res) => fail('CONNECT:')(new Error(String(res.statusCode))));
connect.on('connect', (res, socket) => {
  if (res.statusCode !== 200) {
    fail('CONNECT:')(new Error(String(res.statusCode)));
  }
  https.get({ host: target, path, socket, agent: false, ca: fs.readFileSync(ca) }, (answer) => {
    let body = '';
    answer.on('data', (d) => { body += d; });
    answer.on('end', () => { console.log(answer.statusCode + ' ' + body); process.exit(0); });
  }).on('error', fail('the request:'));
});
connect.end();
