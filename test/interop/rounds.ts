import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** The settings of a client, which each program of these tests gets as JSON in its first argument. */
export interface Part {
  /** URL of the server, or of the servers of a quorum. Other parts of the URL are for Signalbox. */
  readonly url: string
  /** Name of the lock in the client. */
  readonly name: string
  /** Lease of a lock, in milliseconds. */
  readonly lease: number
  /** Whether to renew leases, for clients that can. */
  readonly renew: boolean
  /** Delay before a polling client retries, in milliseconds. */
  readonly retry: number
  /** Time for which a round holds the lock, and maximum time between rounds, in milliseconds. */
  readonly hold: number
  readonly pause: number
  /** Whether rounds use the lock. False in control runs. */
  readonly excludes: boolean
}

/** The lock of one client. */
export interface RoundsLock {
  /** @param wait maximum wait, in milliseconds. @returns whether it acquired the lock */
  acquire(wait: number): Promise<boolean>
  /** @returns false if the client detected that it had lost the lock */
  release(): Promise<boolean>
}

/** Maximum wait of a round for its lock, in milliseconds. */
const PATIENCE = 5000

/**
 * Executes each line of standard input, and writes replies to standard output. `acquire MILLISECONDS` replies `held` or
 * `busy`, and `release` replies `released` or `lost`. `rounds` writes a line `inside FROM TO` for each round, in
 * nanoseconds of the monotonic clock. `stop` ends the rounds, which then reply `stopped`. A failure replies `failed`
 * and the reason. The end of the input ends the program.
 */
export async function answer(part: Part, lock: RoundsLock): Promise<void> {
  const state = { going: false }
  const execute = async (line: string): Promise<void> => {
    const [command, amount] = line.split(' ')
    if (command === 'acquire') say((await lock.acquire(Number(amount))) ? 'held' : 'busy')
    else if (command === 'release') say((await lock.release()) ? 'released' : 'lost')
    else if (command === 'rounds') {
      state.going = true
      while (state.going) await round(part, lock)
      say('stopped')
    } else if (command === 'stop') state.going = false
  }
  say('ready')
  for await (const line of createInterface({ input: process.stdin })) {
    execute(line).catch((error: unknown) => say(`failed ${String(error).replaceAll('\n', ' ')}`))
  }
  process.exit()
}

async function round({ excludes, hold, pause }: Part, lock: RoundsLock): Promise<void> {
  if (excludes && !(await lock.acquire(PATIENCE))) return
  const from = process.hrtime.bigint()
  await sleep(hold)
  const to = process.hrtime.bigint()
  if (excludes) await lock.release()
  say(`inside ${from} ${to}`)
  await sleep(Math.random() * pause)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
