import { now } from '../clock.js'
import { toldAddress } from '../lockers/address-file.js'
import { postgresSupport } from '../lockers/postgres-server.js'
import { until } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import { WaitLog } from '../wait-log.js'

/** The operations of the callers of a process. */
interface Calls {
  /** Performs one operation for the caller with this number. */
  do(caller: number): Promise<unknown>
  end(): Promise<unknown>
}

/**
 * A subject with callers in one process, each of which performs one operation after the other. A wait is the duration
 * of an operation.
 */
export function callers(name: string, count: number, start: (url: string) => Promise<Calls>): ForkedSubject {
  return forked(
    name,
    async ({ folder }) => {
      const calls = await start(await toldAddress(folder))
      return {
        async perform({ startAt, endAt }) {
          const waits = new WaitLog()
          let operations = 0
          await until(startAt)
          const task = async (_: unknown, caller: number): Promise<void> => {
            for (let since = now(); since < endAt; since = now()) {
              await calls.do(caller)
              const end = now()
              waits.add(end - since)
              if (end <= endAt) operations++
            }
          }
          await Promise.all(Array.from({ length: count }, task))
          return { operations, waits: waits.values() }
        },
        async stop() {
          await calls.end()
        },
      }
    },
    { support: postgresSupport },
  )
}
