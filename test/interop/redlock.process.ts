import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import Redlock, { ExecutionError, type Lock } from 'redlock'
import { answer, type Part } from './rounds.js'

const part = JSON.parse(process.argv[2]!) as Part
const servers = part.url.replace('redis-quorum:', 'redis:').split(',')
const clients = servers.map(server => new Redis(server.startsWith('redis:') ? server : `redis://${server}`))
const redlock = new Redlock(clients, { retryCount: 0 })
let held: Lock

await answer(part, {
  // Retries here instead of in redlock, which releases its votes only when it gives up: its own retries keep the votes
  // of a failed attempt, and then fail because of them until they expire.
  async acquire(wait) {
    const end = performance.now() + wait
    for (;;) {
      if (await succeeds(async () => void (held = await redlock.acquire([part.name], part.lease))))
        return true
      if (performance.now() >= end) return false
      await sleep(2 * part.retry * Math.random())
    }
  },
  release: () => succeeds(() => redlock.release(held)),
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
