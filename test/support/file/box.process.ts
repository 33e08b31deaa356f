import { fork } from 'node:child_process'
import cluster from 'node:cluster'
import { parentPort } from 'node:worker_threads'
import { systemClock } from '../../../src/base/clock.js'
import { loadSqlite } from '../../../src/engines/file/driver.js'
import { open, type Box, type LockOptions, type LockReport } from '../../../src/index.js'
import type { Claim } from '../../../src/engine/claim.js'
import type { WriteGrant } from '../../../src/core/grant.js'

/** A call from the test. */
export interface Call {
  readonly id: number
  readonly verb: string
  readonly args: readonly unknown[]
}

export interface Answer {
  readonly id: number
  readonly result?: unknown
  readonly error?: { readonly name: string; readonly code: unknown; readonly message: string }
}

let box: Box | undefined
const grants = new Map<string, WriteGrant>()

function opened(): Box {
  if (!box) throw new Error('open comes first')
  return box
}

function held(name: string): WriteGrant {
  const grant = grants.get(name)
  if (!grant) throw new Error(`no grant ${name}`)
  return grant
}

/** The commands for a box in a process or thread of its own. */
const verbs = {
  /** Continues as another user. First loads the modules that a user without rights may not read. */
  async become(user: number): Promise<void> {
    await loadSqlite()
    await import('../../../src/engines/file/open.js')
    process.setgroups!([])
    process.setgid!(user)
    process.setuid!(user)
  },
  /** Opens a box for the commands that follow. An earlier box stays open. */
  async open(url: string): Promise<string> {
    box = await open(url)
    return box.session
  },
  async acquire(name: string, claims: readonly Claim[], options: LockOptions = {}) {
    const grant = (await opened()
      .lock(...claims)
      .acquire(options)) as WriteGrant
    const at = systemClock.now()
    grants.set(name, grant)
    return { token: grant.token, at }
  },
  async release(name: string): Promise<number> {
    const at = systemClock.now()
    await held(name).release()
    return at
  },
  assertHeld(name: string): void {
    held(name).assertHeld()
  },
  expiresIn: (name: string): number => held(name).expiresIn(),
  /** Waits until the signal of a grant aborts. Returns the code of the reason. */
  async loss(name: string): Promise<unknown> {
    const { signal } = held(name)
    if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve))
    return (signal.reason as { code?: unknown }).code
  },
  async put(store: string, key: string, value: unknown): Promise<number> {
    return opened().store(store).put(key, value)
  },
  async get(store: string, key: string): Promise<unknown> {
    return (await opened().store(store).get(key))?.value
  },
  /**
   * Runs a transaction that writes a key, and then keeps the thread busy until the process has been stopped for a time.
   * @param stopped milliseconds
   */
  async transactionOver(store: string, key: string, value: unknown, stopped: number, lease: number) {
    const { applied } = await opened()
      .store(store)
      .transaction(
        [key],
        async transaction => {
          transaction.put(key, value)
          // The test may stop the process as soon as it has this message.
          let last = systemClock.now()
          await new Promise(sent => process.send!({ inside: true }, sent))
          for (let now = last; now - last < stopped; now = systemClock.now()) last = now
        },
        { lease },
      )
    return applied
  },
  /** Writes ten values of 20 KB, over and over. */
  async write(store: string, times: number): Promise<void> {
    const values = opened().store(store)
    const keys = Array.from({ length: 10 }, (_, index) => `${process.pid} ${index}`)
    for (let time = 0; time < times; time++)
      await Promise.all(keys.map(key => values.put(key, 'v'.repeat(20_000))))
  },
  /** Increments a value over and over. Returns the number of successes, and the codes of the failures. */
  async count(store: string, key: string, duration: number): Promise<{ done: number; failures: string[] }> {
    const end = systemClock.now() + duration
    let done = 0
    const failures: string[] = []
    while (systemClock.now() < end) {
      try {
        await opened()
          .store(store)
          .transaction([key], transaction => transaction.put(key, (transaction.get<number>(key) ?? 0) + 1), {
            wait: 1000,
            lease: 2000,
          })
        done++
      } catch (error) {
        failures.push(String((error as { code?: unknown }).code))
        await new Promise(resolve => setTimeout(resolve, 2))
      }
    }
    return { done, failures }
  },
  async inspect(prefix: string): Promise<LockReport[]> {
    const reports: LockReport[] = []
    for await (const report of opened().inspect(prefix)) reports.push(report)
    return reports
  },
  async close(): Promise<void> {
    await opened().close()
  },
  /** Starts a process that does nothing until it is killed. Returns its ID. It ends by itself after a minute. */
  fork(): number {
    const program = 'setTimeout(() => process.exit(), 60_000); process.on("disconnect", () => undefined)'
    return fork('-e', [program], { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] }).pid!
  },
  /** Ends the process or thread at once: nothing is released. */
  end(): never {
    process.exit()
  },
}

async function answer({ id, verb, args }: Call): Promise<Answer> {
  try {
    const task = verbs[verb as keyof typeof verbs] as (...args: unknown[]) => unknown
    return { id, result: await task(...args) }
  } catch (error) {
    const { name, code, message } = error as { name: string; code?: unknown; message: string }
    return { id, error: { name, code, message } }
  }
}

export type Verbs = typeof verbs

if (parentPort) {
  const port = parentPort
  port.on('message', (call: Call) => void answer(call).then(reply => port.postMessage(reply)))
} else {
  process.on('message', (call: Call) => void answer(call).then(reply => process.send?.(reply)))
  process.on('disconnect', () => process.exit())
  if (cluster.isWorker) process.send!({ listens: true })
}
