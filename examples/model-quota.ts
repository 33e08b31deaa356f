/**
 * Sends prompts to a language model. All processes together stay within the provider's limits of requests and tokens.
 * While customers wait, they take turns, so that one with many prompts delays no other.
 *
 *     REDIS_URL=redis://localhost MODEL_URL=https://model.example node model-quota.js < prompts.jsonl
 *
 * Each line of the input is JSON: {"customer":"anna","prompt":"Hello"}
 */
import { createInterface } from 'node:readline'
import { open, type Duration } from 'signalbox'
import { limitFetch } from 'signalbox/limits/http'

const { REDIS_URL = 'redis://localhost', MODEL_URL, REQUESTS = '500', TOKENS = '200000' } = process.env
if (!MODEL_URL) throw new Error('MODEL_URL is missing')
const per = (process.env['PER'] ?? '1m') as Duration
/** Maximum length of an answer, in tokens. */
const MAX_TOKENS = 200

interface Answer {
  readonly text: string
  readonly usage: { readonly total_tokens: number }
}

await using box = await open(REDIS_URL)
const provider = box.limiter('model', {
  limits: [
    { limit: Number(REQUESTS), per, window: 'smooth' },
    { limit: Number(TOKENS), per, unit: 'tokens' },
  ],
  concurrency: 20,
  // A call may take up to 100 ms longer to arrive than the previous call.
  jitter: '100ms',
  tenantQueue: 10_000,
})

async function ask(customer: string, prompt: string): Promise<Answer> {
  const call = limitFetch(fetch, provider, {
    tenant: { tenant: customer },
    // Few languages have more than a token for each character. The rest is given back when the answer is here.
    cost: { tokens: prompt.length + MAX_TOKENS },
    used: async response => {
      // A refused call costs no tokens.
      if (!response.ok) return { tokens: 0 }
      const { usage } = (await response.json()) as Answer
      return { tokens: usage.total_tokens }
    },
    retries: 3,
    idempotent: true,
  })
  const body = JSON.stringify({ prompt, max_tokens: MAX_TOKENS })
  const response = await call(MODEL_URL!, { method: 'POST', body })
  if (!response.ok) throw new Error(`the model has answered ${response.status}`)
  return (await response.json()) as Answer
}

const answers: Promise<void>[] = []
for await (const line of createInterface({ input: process.stdin })) {
  const { customer, prompt } = JSON.parse(line) as { customer: string; prompt: string }
  const answer = ask(customer, prompt)
  answers.push(
    answer.then(
      ({ text }) => console.log(`${customer}: ${text}`),
      (error: unknown) => console.error(`${customer}: ${String(error)}`),
    ),
  )
}
await Promise.all(answers)
