// Downloads an attachment of Gmail with Google's own library, and asks whose mail it is again and again beside it, until
// there is a file. The library has a token that opens nothing, and none to renew it with.
import { once } from 'node:events'
import { createWriteStream, existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout } from 'node:timers/promises'

const { gmail, auth } = createRequire('/opt/google/')('@googleapis/gmail')
const user = new auth.OAuth2()
user.setCredentials({ access_token: 'placeholder-the-real-one-stays-outside' })
const mail = gmail({ version: 'v1', auth: user })

const asked = createWriteStream('google.asked')
const stopped = new AbortController()
let ends
const download = (async () => {
  const of = { userId: 'me', messageId: 'm1', id: 'a1' }
  const { data } = await mail.users.messages.attachments.get(of, { responseType: 'stream', signal: stopped.signal })
  const file = createWriteStream('google.stream')
  try {
    for await (const chunk of data) if (!file.write(chunk)) await once(file, 'drain')
    ends = 'by itself'
  } catch (error) {
    ends = stopped.signal.aborted ? 'when it is stopped' : error
  }
  file.end()
})()
while (!existsSync('enough')) {
  const { status, data } = await mail.users.getProfile({ userId: 'me' })
  asked.write(`${JSON.stringify(data)}\n${status}\n`)
  await setTimeout(200)
}
stopped.abort()
await download
asked.end()
console.log('the download ends', ends)
