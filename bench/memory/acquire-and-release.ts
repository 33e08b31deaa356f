import { Mutex } from 'async-mutex'
import { open } from 'signalbox'
import { now } from '../clock.js'
import { busy } from '../processes/busy.js'
import { forked } from '../processes/forked.js'
import type { Prepare } from '../processes/performer.js'
import type { Work } from '../work.js'

const TWO_INSIDE = 'two callers were inside at the same time'

/** One key of the memory engine that a number of tasks want. */
function signalbox(tasks: number): Prepare {
  return async () => {
    const box = await open('memory:')
    const mutex = box.mutex('key')
    let inside = false
    const batch = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index++) {
        const grant = await mutex.acquire()
        if (inside) throw new Error(TWO_INSIDE)
        await grant.release()
      }
    }
    const timed = async (): Promise<number> => {
      const since = now()
      const grant = await mutex.acquire()
      const wait = now() - since
      inside = true
      await Promise.resolve()
      inside = false
      await grant.release()
      return wait
    }
    return { perform: window => busy(window, tasks, { batch, timed }), stop: () => box.close() }
  }
}

/** The same with async-mutex, whose release is synchronous. */
function asyncMutex(tasks: number): Prepare {
  return async () => {
    const mutex = new Mutex()
    let inside = false
    const batch = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index++) {
        const release = await mutex.acquire()
        if (inside) throw new Error(TWO_INSIDE)
        release()
      }
    }
    const timed = async (): Promise<number> => {
      const since = now()
      const release = await mutex.acquire()
      const wait = now() - since
      inside = true
      await Promise.resolve()
      inside = false
      release()
      return wait
    }
    return { perform: window => busy(window, tasks, { batch, timed }), stop: async () => {} }
  }
}

/** Acquires and releases one key within a process. */
export function acquireAndRelease(name: string, tasks: number): Work {
  return {
    part: 'memory',
    name,
    seconds: 0.5,
    subjects: [forked('signalbox', signalbox(tasks)), forked('async-mutex', asyncMutex(tasks))],
    comparisons: [{ measure: 'opsPerSecond', of: 'signalbox', to: 'async-mutex', goal: { atLeast: 1.5 } }],
  }
}
