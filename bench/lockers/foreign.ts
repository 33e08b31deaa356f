import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Program } from '../../test/interop/programs.js'
import type { Performance } from '../processes/performer.js'
import { toldAddress } from './address-file.js'
import type { ForeignLibrary } from './locker.js'

/** Time that a virtual machine needs to compile the measured code, in seconds. */
export const VIRTUAL_MACHINE_WARM_UP = 3

interface ForeignProgram extends Pick<ForeignLibrary, 'name' | 'support' | 'warmUp'> {
  readonly program: Program
  /** Arguments after the JSON argument. */
  readonly more?: readonly string[]
}

/**
 * A library of another language, in a program whose threads are the tasks. The program receives one JSON argument: the
 * server's `address`, the `keys` (one for each thread, or one for all), the number of `tasks`, the `guarded` file if
 * exclusion is checked, and the number of this process as `holder`. It prints `ready` when it has started.
 *
 * The line `perform FROM UNTIL` on its standard input starts a window, in milliseconds of the monotonic clock. The
 * program answers with lines: a `broken` exclusion, the `waits`, the times at which they began (`requested`), and last
 * the number of cycles of its threads (`performed`). On an error, it prints `failed` with the reason and ends. It also
 * ends when its input ends.
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
      // Writes to a program that has ended fail; the end of its output reports that.
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

/** Reads the program's report about a window. */
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
