import { Redis } from 'ioredis'
import { Mutex, TimeoutError } from 'redis-semaphore'
import { answer, type Part } from './rounds.js'

const part = JSON.parse(process.argv[2]!) as Part
const client = new Redis(part.url)
let held: Mutex | undefined

await answer(part, {
  async acquire(wait) {
    const mutex = new Mutex(client, part.name, {
      lockTimeout: part.lease,
      acquireTimeout: wait,
      retryInterval: part.retry,
      ...(part.renew ? {} : { refreshInterval: 0 }),
    })
    try {
      await mutex.acquire()
      held = mutex
      return true
    } catch (error) {
      if (error instanceof TimeoutError) return false
      throw error
    }
  },
  async release() {
    // redis-semaphore does not report whether the release succeeded.
    await held!.release()
    return true
  },
})
