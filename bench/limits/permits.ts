import { now } from '../clock.js'
import { toldAddress } from '../lockers/address-file.js'
import { busy } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'

export const CALLERS = 64
/** Permits per second: high enough that no caller waits. */
export const LIMIT = 1e7

export interface Permits {
  take(): Promise<unknown>
  end(): Promise<unknown>
}

/**
 * A subject with {@link CALLERS} callers in one process, each of which takes one permit after the other.
 * @param support starts the server.
 * @param start opens the source of the permits. Receives the server's URL.
 */
export function permits(
  name: string,
  support: (folder: string) => Promise<() => Promise<void>>,
  start: (url: string) => Promise<Permits>,
): ForkedSubject {
  return forked(
    name,
    async ({ folder }) => {
      const from = await start(await toldAddress(folder))
      const batch = async (count: number): Promise<void> => {
        for (let index = 0; index < count; index++) await from.take()
      }
      const timed = async (): Promise<number> => {
        const since = now()
        await from.take()
        return now() - since
      }
      return {
        perform: window => busy(window, CALLERS, { batch, timed }),
        stop: async () => {
          await from.end()
        },
      }
    },
    { support },
  )
}
