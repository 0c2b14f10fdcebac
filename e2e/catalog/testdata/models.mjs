// Asks a model with its provider's own library, and expects the stub's answer.
import { createRequire } from 'node:module'

const require = createRequire('/opt/models/')
const messages = [{ role: 'user', content: 'hello' }]

async function ofOpenAI(options, stream) {
  const OpenAI = require('openai')
  const answer = await new OpenAI(options).chat.completions.create({ model: 'm', messages, stream })
  return stream ? joined(answer) : answer.choices[0].message.content
}

async function joined(chunks) {
  let text = ''
  for await (const chunk of chunks) text += chunk.choices[0]?.delta?.content ?? ''
  return text
}

const ask = {
  async anthropic() {
    const Anthropic = require('@anthropic-ai/sdk')
    const answer = await new Anthropic().messages.create({ model: 'm', max_tokens: 9, messages })
    return answer.content[0].text
  },
  openai: () => ofOpenAI({}, true),
  async gemini() {
    const { GoogleGenAI } = require('@google/genai')
    const models = new GoogleGenAI({ apiKey: process.env.GEMINI_API_KEY }).models
    return (await models.generateContent({ model: 'gemini', contents: 'hello' })).text
  },
  async openrouter() {
    const { OpenRouter } = await import(require.resolve('@openrouter/sdk'))
    const client = new OpenRouter({ apiKey: process.env.OPENROUTER_API_KEY })
    return joined(await client.chat.send({ chatRequest: { model: 'm', messages, stream: true } }))
  },
  local: () => ofOpenAI({ baseURL: 'http://local-model.test:11434/v1', apiKey: 'none' }),
}

const text = await ask[process.argv[2]]()
if (!/of the model|says the stub/.test(text)) throw new Error(`the model says ${text}`)
