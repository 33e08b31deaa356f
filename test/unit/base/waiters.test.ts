import { describe, expect, test, vi } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { Waiter } from '../../../src/base/lane.js'
import { Waiters } from '../../../src/base/waiters.js'

/** Creates a queue whose owner rejects late waiters and notes all events. */
function scene() {
  const clock = new VirtualClock()
  const after = vi.spyOn(clock, 'after')
  const notes: string[] = []
  const names = new Map<Waiter, string>()
  const waiters: Waiters<Waiter> = new Waiters<Waiter>(clock, {
    timeOver: () => {
      notes.push(`look ${clock.now()}`)
      while (waiters.earliestDeadline <= clock.now()) {
        const waiter = waiters.mostUrgent!
        notes.push(`${names.get(waiter)} late`)
        waiters.remove(waiter)
      }
      waiters.setTimer()
    },
    aborted: waiter => {
      notes.push(`${names.get(waiter)} aborted`)
      waiters.remove(waiter)
    },
  })
  const add = (name: string, priority = 0, n = 1): Waiter => {
    const waiter = new Waiter(n)
    names.set(waiter, name)
    waiters.add(waiter, priority)
    return waiter
  }
  const limit = (waiter: Waiter, deadline: number, signal?: AbortSignal): void => {
    waiters.limit(waiter, deadline - clock.now(), deadline, signal)
    waiters.setTimer()
  }
  const order = (): string => Array.from(waiters, waiter => names.get(waiter)).join('')
  return { clock, after, notes, waiters, add, limit, order }
}

describe('a queue of local waiters', () => {
  test('has a timer for its owner’s next look if that is sooner', () => {
    const { clock, notes, waiters, add, limit } = scene()
    limit(add('a'), 300)
    waiters.checkAt(200, clock.now())
    clock.advance(250)
    expect([...notes, clock.nextAt()]).toEqual(['look 200', 300])
  })

  test('keeps the process alive for a waiter with a deadline or a signal, and for no other', () => {
    const { clock, after, waiters, add, limit } = scene()
    add('a')
    waiters.setTimer()
    expect(clock.nextAt()).toBeUndefined()
    const patient = add('b')
    limit(patient, Infinity, new AbortController().signal)
    expect(after).toHaveBeenLastCalledWith(Infinity, expect.anything(), true)
    const late = add('c')
    limit(late, 100)
    expect(after).toHaveBeenLastCalledWith(100, expect.anything(), true)
    waiters.remove(late)
    waiters.remove(patient)
    expect(clock.nextAt()).toBeUndefined()
  })
})
