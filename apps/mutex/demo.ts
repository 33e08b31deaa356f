import { randomUUID } from 'node:crypto'
import { conditionalRelease, unconditionalDelete } from './danger.js'
import { MutexService } from './mutex-service.js'
import { lockedWork, work, type TaskParts } from './task.js'

/** Number of tasks that start at the same time. */
const TASKS = 10
/** Duration of each task, in milliseconds. */
const DURATION = 100
/** Lease of the mutex, in seconds. Longer than a busy machine may pause. */
const LEASE_SECONDS = 10
/** Lease that a task outlives, in seconds. */
const SHORT_LEASE_SECONDS = 1
const WAIT_MILLIS = 60_000
/** Maximum time that a task waits inside for another one to come in, in milliseconds. */
const STAY = 1000

/** Plays all scenes on the engine of this URL and prints each step. */
export async function demo(url: string, print: (line: string) => void): Promise<void> {
  // The name is unique, so that another demo on the same engine uses another mutex.
  const key = `mutex-demo:${randomUUID()}`
  const numbers = Array.from({ length: TASKS }, (_, index) => index + 1)
  const parts: TaskParts = { print, duration: DURATION }

  print(`parallel part start : ${TASKS} tasks at once, without the mutex`)
  await Promise.all(numbers.map(task => work(task, parts)))
  print('parallel part finish')

  print(`locked part start : ${TASKS} tasks at once, with the mutex`)
  {
    const options = { url, leaseSeconds: LEASE_SECONDS, waitMillis: WAIT_MILLIS, log: print }
    await using service = new MutexService(options)
    await Promise.all(numbers.map(task => lockedWork(task, service, key, parts)))
  }
  print('locked part finish')

  const danger = { url, key, leaseSeconds: SHORT_LEASE_SECONDS, stay: STAY, print }
  print('danger part start : a process deletes the lock that it finds')
  await unconditionalDelete(danger)
  print('danger part finish')

  print('safe part start : a process releases its own lock, and writes under its token')
  await conditionalRelease(danger)
  print('safe part finish')
}
