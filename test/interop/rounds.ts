import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** What every program of these tests, in any language, gets as JSON in its only argument. */
export interface Part {
  /** The server, or those of a quorum; what else it says is for Signalbox. */
  readonly url: string
  /** Name of the lock in the client. */
  readonly name: string
  /** The lease of a lock, in milliseconds. */
  readonly lease: number
  /** Whether leases are renewed, by a client that can. */
  readonly renew: boolean
  /** After how long a client that polls tries again, in milliseconds. */
  readonly retry: number
  /** How long a round stays inside, and the maximum time that it stays away, in milliseconds. */
  readonly hold: number
  readonly pause: number
  /** False in control runs: then nothing is locked. */
  readonly excludes: boolean
}

/** The lock of one client. */
export interface RoundsLock {
  /** @param wait maximum wait, in milliseconds. @returns whether it was got. */
  acquire(wait: number): Promise<boolean>
  /** @returns false when it was lost before, by a client that can know. */
  release(): Promise<boolean>
}

/** How long a round waits for its lock in one attempt, in milliseconds. */
const PATIENCE = 5000

/**
 * Executes each line of standard input, and answers on standard output: `acquire MILLISECONDS` with
 * `held` or `busy`; `release` with `released` or `lost`; `rounds` with a line `inside FROM TO` for each round, in
 * nanoseconds of the monotonic clock, until `stop`, which ends it with `stopped`. Anything that fails is answered with
 * `failed` and the reason. The end of the input ends the program.
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
