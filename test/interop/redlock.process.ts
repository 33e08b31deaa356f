import { Redis } from 'ioredis'
import Redlock, { ExecutionError, type Lock } from 'redlock'
import { answer, type Part } from './rounds.js'

const part = JSON.parse(process.argv[2]!) as Part
const servers = part.url.replace('redis-quorum:', 'redis:').split(',')
const clients = servers.map(server => new Redis(server.startsWith('redis:') ? server : `redis://${server}`))
let redlock: Redlock
let held: Lock

await answer(part, {
  acquire(wait) {
    const retryCount = Math.ceil(wait / part.retry)
    redlock = new Redlock(clients, { retryCount, retryDelay: part.retry, retryJitter: part.retry })
    return succeeds(async () => void (held = await redlock.acquire([part.name], part.lease)))
  },
  // What was lost would be tried again as what could not be reached.
  release: () => succeeds(() => redlock.release(held, { retryCount: 0 })),
})

async function succeeds(task: () => Promise<unknown>): Promise<boolean> {
  try {
    await task()
    return true
  } catch (error) {
    if (error instanceof ExecutionError) return false
    throw error
  }
}
