import type { Box, BoxOptions } from 'signalbox'
import { now } from '../clock.js'
import { busy, type Operations } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Work } from '../work.js'
import { inBox } from './in-box.js'

/** Code that does not use locks: one asynchronous call inside another. */
const plain: Operations = {
  async batch(count) {
    for (let index = 0; index < count; index++) await outer(index)
  },
  async timed() {
    const since = now()
    await outer(0)
    return now() - since
  },
}

async function outer(value: number): Promise<number> {
  return (await inner(value)) + 1
}

async function inner(value: number): Promise<number> {
  return value + 1
}

/** Plain code in a process that has used `run` once. */
function bystander(name: string, options: BoxOptions | undefined): ForkedSubject {
  const afterRun = async (box: Box): Promise<Operations> => {
    await box.mutex('key').run(() => undefined)
    return plain
  }
  return inBox(name, afterRun, options)
}

const ALONE = 'before any run'
const FOLLOWED = 'after a run, tasks followed'
const NOT_FOLLOWED = 'after a run, tasks not followed'

/** The cost of following tasks for other code in the process. */
export const bystanders: Work = {
  part: 'costs',
  name: 'other asynchronous code in the process',
  seconds: 0.25,
  subjects: [
    forked(ALONE, async () => ({ perform: window => busy(window, 1, plain), stop: async () => {} })),
    bystander(FOLLOWED, undefined),
    bystander(NOT_FOLLOWED, { detectDeadlocks: false }),
  ],
  comparisons: [
    { measure: 'opsPerSecond', of: FOLLOWED, to: ALONE },
    { measure: 'opsPerSecond', of: NOT_FOLLOWED, to: ALONE },
  ],
}
