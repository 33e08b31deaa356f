/** One process of a subject: `node participant.process.js WORK SUBJECT SETTING`. */
import { forkedSubject } from '../registry.js'
import type { Answer, Order, Setting } from './performer.js'

const [work, subject, setting] = process.argv.slice(2) as [string, string, string]

/** Sends a message to the bench. Without a bench, ends the process. */
function answer(message: Answer): void {
  if (process.connected) process.send!(message)
  else process.exit(1)
}

function connections(): number {
  return process.getActiveResourcesInfo().filter(type => type === 'TCPSocketWrap').length
}

function fail(error: unknown): void {
  answer({ type: 'failed', message: error instanceof Error ? (error.stack ?? error.message) : String(error) })
}

try {
  const performer = await forkedSubject(work, subject).prepare(JSON.parse(setting) as Setting)
  process.on('message', order => void carryOut(order as Order).catch(fail))
  process.on('disconnect', () => process.exit(1))
  answer({ type: 'ready' })

  const carryOut = async (order: Order): Promise<void> => {
    if (order.type === 'perform') {
      const performance = await performer.perform(order.window)
      answer({ type: 'performed', performance: { connections: connections(), ...performance } })
    } else {
      process.removeAllListeners('disconnect')
      await performer.stop()
      process.exit(0)
    }
  }
} catch (error) {
  fail(error)
}
