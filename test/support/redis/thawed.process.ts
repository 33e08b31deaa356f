/**
 * Stops itself before each of several calls on Redis, and prints the outcome of the call. The test cuts its connections
 * while it is stopped, and continues it.
 */
import { parseRedisUrl } from '../../../src/engines/redis/redis-url.js'
import { open, type Box } from '../../../src/index.js'
import { openBy } from './box-ways.js'
import { clientPackages } from './client-packages.js'

const [url, name, way] = process.argv.slice(2)
const { client, cluster, connectWith } = clientPackages.find(each => each.name === name)!

async function openBox(): Promise<Box> {
  // The package of the quorum finds the built library.
  if (url!.startsWith('redis-quorum:')) return (await import('signalbox')).open(url!)
  if (way === 'own') return openBy({ connectWith }, url!)
  const { server } = parseRedisUrl(url!)
  const given = server.kind === 'cluster' ? await cluster(server.seeds) : await client(url!)
  return open({ redis: given.client })
}

const box = await openBox()
const limiter = way === 'quorum' ? undefined : box.limiter('limiter', { limit: 1000, per: '1m' })
const store = box.store('store')
let ids = 0

const locks: Record<string, () => Promise<unknown>> = {
  acquire: () => box.mutex('acquire').run(() => undefined, { wait: 5000 }),
  tryAcquire: async () => (await box.mutex('tryAcquire').tryAcquire())!.release(),
  inspect: async () => {
    for await (const lock of box.inspect()) void lock
  },
}
const others: Record<string, () => Promise<unknown>> = {
  get: () => store.get('key'),
  put: () => store.put('put', 1),
  transaction: () => store.transaction(['key'], tx => tx.put('key', (tx.get<number>('key') ?? 0) + 1)),
  'transaction with ID': () =>
    store.transaction(['key'], tx => tx.put('key', (tx.get<number>('key') ?? 0) + 1), { id: `id ${++ids}` }),
  'limiter.acquire': () => limiter!.acquire(1, { wait: 5000 }),
  'limiter.tryAcquire': () => limiter!.tryAcquire(),
}
const calls = way === 'quorum' ? locks : { ...locks, ...others }

for (const call of Object.values(calls)) await call()
for (const when of ['at once', 'later'])
  for (const [sort, call] of Object.entries(calls)) {
    console.log('stopping')
    process.kill(process.pid, 'SIGSTOP')
    // By then the process has noticed the loss.
    const turns = when === 'later' ? 5 : 0
    for (let turn = 0; turn < turns; turn++) await new Promise(resolve => setImmediate(resolve))
    await call().then(
      () => console.log(`${sort} ${when}: done`),
      (error: unknown) => console.log(`${sort} ${when}: ${String(error)}`),
    )
  }
if (way !== 'quorum') console.log(`key: ${String((await store.get('key'))!.value)}`)
process.exit()
