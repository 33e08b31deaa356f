import { open, type Box, type Lock } from 'signalbox'
import { now } from '../clock.js'
import { busy, type Operations } from '../processes/busy.js'
import { forked } from '../processes/forked.js'
import type { Work } from '../work.js'
import { inBox } from './in-box.js'

/** Acquires and releases on the memory engine. Calls `lockOf` each time, as callers write it. */
function acquired(lockOf: (box: Box) => Lock): (box: Box) => Operations {
  return box => ({
    async batch(count) {
      for (let index = 0; index < count; index++) {
        const grant = await lockOf(box).acquire()
        await grant.release()
      }
    },
    async timed() {
      const since = now()
      const grant = await lockOf(box).acquire()
      const wait = now() - since
      await grant.release()
      return wait
    },
  })
}

/** Acquires and releases the same mutex repeatedly. */
export function kept(box: Box): Operations {
  const mutex = box.mutex('key')
  return acquired(() => mutex)(box)
}

/** Runs an empty task under a mutex. */
function run(box: Box): Operations {
  const mutex = box.mutex('key')
  const nothing = (): void => undefined
  return {
    async batch(count) {
      for (let index = 0; index < count; index++) await mutex.run(nothing)
    },
    async timed() {
      const since = now()
      let wait = 0
      await mutex.run(() => void (wait = now() - since))
      return wait
    },
  }
}

/** Two boxes that acquire the same key alternately, so that each turn goes through the lock table. */
function alternating(box: Box, other: Box): Operations {
  const mutexes = [box.mutex('key'), other.mutex('key')] as const
  let turn = 0
  const next = () => mutexes[(turn ^= 1)]!
  return {
    async batch(count) {
      for (let index = 0; index < count; index++) {
        const grant = await next().acquire()
        await grant.release()
      }
    },
    async timed() {
      const since = now()
      const grant = await next().acquire()
      const wait = now() - since
      await grant.release()
      return wait
    },
  }
}

const KEPT = 'mutex, kept in a variable'

let keys = 0

/** The costs of the operations and of the kinds of locks, compared with each other. */
export const verbs: Work = {
  part: 'costs',
  name: 'one lock operation on the memory engine',
  seconds: 0.25,
  subjects: [
    inBox(KEPT, kept),
    inBox(
      'mutex, named each time',
      acquired(box => box.mutex('key')),
    ),
    inBox(
      'mutex, another key each time',
      acquired(box => box.mutex(`key ${keys++}`)),
    ),
    forked('mutex, two boxes by turns', async () => {
      const [box, other] = [await open('memory:shared'), await open('memory:shared')]
      const operations = alternating(box, other)
      return {
        perform: window => busy(window, 1, operations),
        async stop() {
          await box.close()
          await other.close()
        },
      }
    }),
    inBox(
      'mutex of 3 keys',
      acquired(box => box.mutex('a', 'b', 'c')),
    ),
    inBox(
      'semaphore, 1 of 4 permits',
      acquired(box => box.semaphore('key', { max: 4 })),
    ),
    inBox(
      'read lock',
      acquired(box => box.readWriteLock('key').read),
    ),
    inBox(
      'write lock',
      acquired(box => box.readWriteLock('key').write),
    ),
    inBox('run, tasks followed', run),
    inBox('run, tasks not followed', run, { detectDeadlocks: false }),
  ],
  comparisons: [{ measure: 'opsPerSecond', of: 'run, tasks followed', to: 'run, tasks not followed' }],
}
