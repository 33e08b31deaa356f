/**
 * Uses each feature of a box in turn, and prints a line of JSON for each: its name, and its outcome or the code of its
 * error. The argument is the URL.
 */
import { open } from 'signalbox'
import { sharedLimiter } from 'signalbox/limits'

const url = process.argv[2]!

async function tell(what: string, task: () => unknown): Promise<void> {
  let outcome: unknown
  try {
    outcome = await task()
  } catch (error) {
    outcome = (error as { code?: unknown }).code ?? String(error)
  }
  console.log(JSON.stringify([what, outcome]))
}

await tell('lock', async () => {
  await using one = await open(url)
  await using other = await open(url)
  const grant = await one.mutex('key').acquire({ lease: '10s' })
  grant.assertHeld()
  const isBusy = (await other.mutex('key').tryAcquire()) === undefined
  const waiting = other.mutex('key').acquire({ wait: '10s' })
  await grant.release()
  const next = await waiting
  return isBusy && next.token > grant.token && grant.signal.aborted
})
await tell('transaction', async () => {
  await using box = await open(url)
  const store = box.store('trains')
  await store.put('one', 1)
  await store.transaction(['one', 'other'], async transaction => {
    await Promise.resolve()
    transaction.put('other', transaction.get<number>('one')! + 1)
  })
  return (await store.get('other'))?.value
})
await tell('limit', async () => {
  await using box = await open(url)
  const limiter = box.limiter('api', { limit: 2, per: '1s' })
  const begun = performance.now()
  for (let call = 0; call < 3; call++) await limiter.acquire()
  return performance.now() - begun >= 999
})
await tell('limit of threads', async () => {
  await using limiter = sharedLimiter({ limit: 1, per: '1s' })
  return limiter.tryAcquire() !== undefined
})
