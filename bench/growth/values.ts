import { now } from '../clock.js'
import { until } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performer, Setting } from '../processes/performer.js'
import { WaitLog } from '../wait-log.js'
import type { Work } from '../work.js'
import { comparedToFirst } from './compared.js'
import type { Engine } from './engines.js'

const SIZES = [100, 100_000]
/** Number of values that are written in parallel before the measurement. */
const AT_ONCE = 256

/** Writes of one value next to others that are stored. */
export function storedValues({ part, name: engine, signalbox, openBox }: Engine): Work {
  const subject = (size: number): ForkedSubject =>
    forked(nameOf(size), setting => performerOf(openBox, setting, size), {
      support: signalbox.support,
      growth: { picture: `${engine}: values in the store`, line: 'signalbox', size, unit: 'values' },
    })
  return {
    part,
    name: `${engine}: write a value next to others`,
    seconds: 1,
    subjects: SIZES.map(subject),
    comparisons: comparedToFirst(SIZES.map(nameOf), { atLeast: 0.8 }),
  }
}

function nameOf(size: number): string {
  return `${size} values`
}

async function performerOf(
  openBox: Engine['openBox'],
  { folder }: Setting,
  size: number,
): Promise<Performer> {
  const box = await openBox(folder)
  const store = box.store('values')
  let written = 0
  const fill = async (): Promise<void> => {
    while (written < size) await store.put(`value-${written++}`, 'a value')
  }
  await Promise.all(Array.from({ length: AT_ONCE }, fill))
  return {
    async perform({ startAt, endAt }) {
      const waits = new WaitLog()
      let operations = 0
      await until(startAt)
      for (let since = now(); since < endAt; since = now()) {
        await store.put(`value-${operations % size}`, operations)
        waits.add(now() - since)
        operations++
      }
      return { operations, doneAt: now(), waits: waits.values() }
    },
    stop: () => box.close(),
  }
}
