import { setTimeout as sleep } from 'node:timers/promises'
import { LostError, open } from 'signalbox'
import { FencedRegister } from './fenced-register.js'
import { MutexService, type Mutex } from './mutex-service.js'
import { deleteUnconditionally } from './unsafe-mutex.js'

/** Settings of the scenes in which a task outlives its lease. */
export interface DangerParts {
  readonly url: string
  readonly key: string
  readonly leaseSeconds: number
  /** Maximum time that the second task waits inside for a third one to come in, in milliseconds. */
  readonly stay: number
  readonly print: (line: string) => void
}

/** The last two steps of a task: it writes its result and unlocks. */
interface Manner {
  write(task: number, mutex: Mutex): void
  unlock(mutex: Mutex): Promise<void>
}

/**
 * Plays the scene in which a task outlives its lease, then deletes the lock without checking its holder. A third task
 * comes in while the second one is still inside.
 */
export async function unconditionalDelete(parts: DangerParts): Promise<void> {
  const { url, key, print } = parts
  let value = 'nothing'
  await using box = await open(url)
  await outliveLease(parts, {
    write(task) {
      value = `the result of ${task}`
      print(`write by ${task} : accepted, the value is ${value}`)
    },
    async unlock(mutex) {
      const deleted = await deleteUnconditionally(box, key)
      print(`delete key : lock_id expect=${mutex.lockId} actual=${deleted}`)
    },
  })
}

/**
 * Plays the same scene with conditional releases. The signal of the first task has aborted, the fence rejects its late
 * write, and its release fails.
 */
export async function conditionalRelease(parts: DangerParts): Promise<void> {
  const { print } = parts
  const register = new FencedRegister()
  await outliveLease(parts, {
    write(task, mutex) {
      print(`signal of ${task} aborted : ${mutex.signal.aborted}`)
      const accepted = register.write(`the result of ${task}`, mutex.token)
      print(
        `write by ${task} : ${accepted ? 'accepted' : 'rejected by the fence'}, the value is ${register.value}`,
      )
    },
    async unlock(mutex) {
      try {
        await mutex.release()
      } catch (error) {
        if (!(error instanceof LostError)) throw error
        print(`release refused : ${error.message}`)
      }
    },
  })
}

/** Runs three tasks. The first one does not renew its lease, and is held up until the second one is in. */
async function outliveLease(parts: DangerParts, manner: Manner): Promise<void> {
  const { key, print, stay } = parts
  const options = { url: parts.url, leaseSeconds: parts.leaseSeconds, waitMillis: 60_000, log: print }
  await using unrenewed = new MutexService({ ...options, renew: false })
  await using service = new MutexService(options)
  const secondIsIn = new Moment()
  const firstIsDone = new Moment()
  const thirdIsIn = new Moment()
  const inside = new Set<number>()

  const first = async (mutex: Mutex): Promise<void> => {
    await secondIsIn.passed
    manner.write(1, mutex)
    print('process end 1')
    print('Unlock by 1')
    await manner.unlock(mutex)
    firstIsDone.pass()
  }
  const other = async (task: number, isIn: Moment, outcome: () => Promise<unknown>): Promise<void> => {
    print(`wait ${task}`)
    const mutex = await service.waitForSingleObject(key)
    print(`Lock by ${task}`)
    print(`process start ${task}`)
    inside.add(task)
    if (inside.size > 1) print(`inside at once : ${[...inside].join(' and ')}`)
    isIn.pass()
    manner.write(task, mutex)
    await outcome()
    inside.delete(task)
    print(`process end ${task}`)
    print(`Unlock by ${task}`)
    await manner.unlock(mutex)
  }

  print('wait 1')
  const mutex = await unrenewed.waitForSingleObject(key)
  print('Lock by 1')
  print('process start 1')
  print(`hold up 1 : longer than its lease of ${parts.leaseSeconds} s, which is not renewed`)
  await Promise.all([
    first(mutex),
    other(2, secondIsIn, async () => {
      await firstIsDone.passed
      await Promise.race([thirdIsIn.passed, sleep(stay)])
    }),
    secondIsIn.passed.then(() => other(3, thirdIsIn, () => sleep(stay / 10))),
  ])
}

/** An event that happens once. */
class Moment {
  pass!: () => void
  readonly passed = new Promise<void>(resolve => (this.pass = resolve))
}
