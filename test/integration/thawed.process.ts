/**
 * Opens a box, makes a call, and stops itself right before it makes that call again. Prints a line when it stops, and
 * the outcome of the second call.
 */
import pg from 'pg'
import postgres from 'postgres'
import { open, type Box } from 'signalbox'

const [url, client, name, key] = process.argv.slice(2) as [string, string, string, string]

function openBox(): Promise<Box> {
  switch (client) {
    case 'pool': {
      const pool = new pg.Pool({ connectionString: url })
      pool.on('error', () => undefined)
      return open({ postgres: pool })
    }
    case 'sql':
      return open({ postgres: postgres(url) })
    default:
      return open(url)
  }
}

function stop(): void {
  console.log('stopped')
  process.kill(process.pid, 'SIGSTOP')
}

const box = await openBox()
const store = box.store('s')
let ids = 0

const calls: Record<string, () => Promise<unknown>> = {
  acquire: () => box.mutex(key).run(() => undefined, { wait: '20s' }),
  tryAcquire: async () => (await box.mutex(key).tryAcquire())!.release(),
  get: () => store.get(key),
  put: () => store.put(key, 'value'),
  transaction: () =>
    store.transaction([key], state => state.put(key, (state.get<number>(key) ?? 0) + 1), {
      id: `change ${++ids}`,
    }),
  'limiter.acquire': () => box.limiter(key, { limit: 100, per: '1h' }).acquire(1, { wait: '5s' }),
}

/** Waits for a lock that the test holds until the process stops. */
async function wait(): Promise<void> {
  const waiting = box.mutex(key).run(() => undefined)
  while ((await box.inspect(key)[Symbol.asyncIterator]().next()).value?.waiters.length !== 1);
  stop()
  await waiting
}

async function again(call: () => Promise<unknown>): Promise<void> {
  await call()
  stop()
  await call()
}

// This lock becomes free when the server ends the session of the process. The test waits for that.
await box.mutex(`mark ${key}`).acquire({ lease: '1h' })
await (name === 'wait' ? wait() : again(calls[name]!)).then(
  () => console.log('done'),
  (error: unknown) => console.log(String(error)),
)
if (name === 'transaction') console.log(`sum: ${String((await store.get(key))?.value)}`)
process.exit()
