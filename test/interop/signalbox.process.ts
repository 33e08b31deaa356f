import { LostError, open, TimedOutError, type Grant } from 'signalbox'
import { answer, type Part } from './rounds.js'

const part = JSON.parse(process.argv[2]!) as Part
const box = await open(part.url)
const { read, write } = box.readWriteLock(part.name)
const side = process.argv[3]
const lock = side === 'read' ? read : side === 'write' ? write : box.mutex(part.name)
let grant: Grant | undefined

await answer(part, {
  async acquire(wait) {
    const { lease, renew } = part
    try {
      grant = await lock.acquire({ wait, lease, renew })
      return true
    } catch (error) {
      if (error instanceof TimedOutError) return false
      throw error
    }
  },
  async release() {
    try {
      await grant!.release()
      return true
    } catch (error) {
      if (error instanceof LostError) return false
      throw error
    }
  },
})
