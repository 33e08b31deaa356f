import type { Box, Grant } from 'signalbox'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { now } from '../clock.js'
import { toldAddress } from '../lockers/address-file.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import { until } from '../processes/busy.js'
import type { Performer, Setting } from '../processes/performer.js'
import { WaitLog } from '../wait-log.js'
import type { Work } from '../work.js'
import { PORT, type Engine } from './engines.js'

const CALLERS = 100
/** Round-trip times to the server, in milliseconds. */
const DISTANCES = [0, 2, 40]

type Ask = (box: Box, key: string) => Promise<Grant>

const READERS = 'readers'
const PERMITS = 'permits of a semaphore'

const asks: Readonly<Record<string, Ask>> = {
  [READERS]: (box, key) => box.readWriteLock(key).read.acquire(),
  [PERMITS]: (box, key) => box.semaphore(key, { max: CALLERS }).acquire(),
}

/** Measures the time until all callers of one distant box hold a shared lock together. */
export function farReaders({ part, name: engine, signalbox, openThrough }: Engine): readonly Work[] {
  if (!openThrough) return []
  const subject = (kind: string, size: number): ForkedSubject =>
    forked(nameOf(kind, size), setting => performerOf(openThrough, setting, kind, size), {
      support: signalbox.support,
      growth: {
        picture: `${engine}: ${CALLERS} callers inside together`,
        line: kind,
        size,
        unit: 'ms round trip',
      },
    })
  return [
    {
      part,
      name: `${engine}: until ${CALLERS} callers of a box are inside together`,
      seconds: 3,
      mostRounds: 3,
      subjects: DISTANCES.flatMap(size => Object.keys(asks).map(kind => subject(kind, size))),
      comparisons: [],
      targets: Object.keys(asks).map(kind => ({
        measure: 'worst wait',
        of: nameOf(kind, 40),
        goal: { atMost: 100 },
      })),
    },
  ]
}

function nameOf(kind: string, distance: number): string {
  return `${kind}, ${distance} ms away`
}

async function performerOf(
  openThrough: NonNullable<Engine['openThrough']>,
  { folder }: Setting,
  kind: string,
  distance: number,
): Promise<Performer> {
  const address = await toldAddress(folder)
  const proxy = await Proxy.start(Number(PORT.exec(address)![2]))
  proxy.delay = distance / 2
  const box = await openThrough(proxy, address)
  const ask = asks[kind]!
  let round = 0
  return {
    async perform({ startAt, endAt }) {
      const waits = new WaitLog()
      let operations = 0
      let doneAt: number
      await until(startAt)
      do {
        const key = `key-${round++}`
        const since = now()
        const entered = async (): Promise<Grant> => {
          const grant = await ask(box, key)
          waits.add(now() - since)
          return grant
        }
        const inside = await Promise.all(Array.from({ length: CALLERS }, entered))
        await Promise.all(inside.map(grant => grant.release()))
        operations += CALLERS
        doneAt = now()
      } while (doneAt < endAt)
      return { operations, doneAt, waits: waits.values() }
    },
    async stop() {
      await box.close()
      await proxy[Symbol.asyncDispose]()
    },
  }
}
