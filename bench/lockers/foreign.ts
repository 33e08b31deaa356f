import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Program } from '../../test/interop/programs.js'
import type { Performance } from '../processes/performer.js'
import { toldAddress } from './address-file.js'
import type { ForeignLibrary } from './locker.js'

/** Until a virtual machine has compiled what counts, in seconds. */
export const VIRTUAL_MACHINE_WARM_UP = 3

interface ForeignProgram extends Pick<ForeignLibrary, 'name' | 'support' | 'warmUp'> {
  readonly program: Program
  /** What comes after the argument that gives it its part. */
  readonly more?: readonly string[]
}

/**
 * A library of another language, in a program whose threads are the tasks. The program gets as JSON in an argument the
 * server's `address`, the `keys` (a thread each, or all threads the same), the number of `tasks`, and, where exclusion
 * is checked, the file that is `guarded`, with the number of this process as `holder`. It says `ready` when it is.
 *
 * `perform FROM UNTIL` on its standard input, in milliseconds of the monotonic clock, is answered by a line each with
 * what was `broken`, the `waits`, when they began (`requested`), and at last how often the threads `performed`. What
 * goes wrong is `failed`, with the reason, and the program ends at once, as it does at the end of its input.
 */
export function foreign({ name, support, warmUp, program, more = [] }: ForeignProgram): ForeignLibrary {
  return {
    name,
    support,
    warmUp,
    async start({ folder, process: index, keys, tasks, isGuarded }) {
      const part = {
        address: await toldAddress(folder),
        keys,
        tasks,
        guarded: isGuarded ? join(folder, 'guarded') : null,
        holder: index + 1,
      }
      const argv = [...program.argv, JSON.stringify(part), ...more]
      const child = spawn(program.program, argv, { stdio: ['pipe', 'pipe', 'inherit'] })
      let complaint = `the program of ${name} has ended`
      const gone = new Promise<void>(resolve => child.once('close', () => resolve()))
      child.once('error', error => (complaint = error.message))
      // An order to a program that has ended is answered by that end.
      child.stdin.on('error', () => undefined)
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      const next = async (): Promise<readonly [string, readonly string[]]> => {
        const { value, done } = await lines.next()
        if (done === true) {
          await gone
          throw new Error(complaint)
        }
        const [what, ...values] = value.split(' ')
        if (what === 'failed') throw new Error(`${name}: ${values.join(' ')}`)
        return [what!, values]
      }
      await next()
      return {
        perform({ startAt, endAt }) {
          child.stdin.write(`perform ${startAt} ${endAt}\n`)
          return performed(next)
        },
        async stop() {
          child.stdin.end()
          await gone
        },
      }
    },
  }
}

/** Reads what the program reports about a window. */
async function performed(next: () => Promise<readonly [string, readonly string[]]>): Promise<Performance> {
  const waits: number[] = []
  const requested: number[] = []
  let broken: string | undefined
  while (true) {
    const [what, values] = await next()
    if (what === 'waits') for (const value of values) waits.push(Number(value))
    else if (what === 'requested') for (const value of values) requested.push(Number(value))
    else if (what === 'broken') broken = values.join(' ')
    else if (what === 'performed') {
      return {
        operations: Number(values[0]),
        waits: Float64Array.from(waits),
        requested: Float64Array.from(requested),
        broken,
      }
    } else throw new Error(`a program of the bench said ${what}`)
  }
}
