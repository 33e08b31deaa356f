import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { Reconnector } from '../../../../src/engine/kit/reconnector.js'

/** A server that the test starts and stops. */
class Server {
  attempts = 0
  isUp = true

  connect(): Promise<number> {
    this.attempts++
    return this.isUp ? Promise.resolve(this.attempts) : Promise.reject(new Error('down'))
  }
}

function start() {
  const server = new Server()
  const clock = new VirtualClock()
  const reconnector = new Reconnector(() => server.connect(), clock)
  return { server, clock, reconnector }
}

/** Lets all ready promises settle. */
const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

test('a lost connection is replaced at once, and after failures with pauses that grow', async () => {
  const { server, clock, reconnector } = start()
  await reconnector.get()
  server.isUp = false
  expect(reconnector.lost(1)).toBe(true)
  expect(reconnector.lost(1)).toBe(false)
  await settle()
  expect(server.attempts).toBe(2)
  const pauses: number[] = []
  for (let round = 0; round < 8; round++) {
    const at = clock.nextAt()!
    pauses.push(at - clock.now())
    clock.advance(at - clock.now())
    await settle()
  }
  for (const [round, pause] of pauses.entries()) {
    const most = Math.min(50 * 2 ** round, 2000)
    expect(pause).toBeGreaterThanOrEqual(most / 2)
    expect(pause).toBeLessThanOrEqual(most)
  }
  server.isUp = true
  clock.advance(2000)
  await settle()
  expect(reconnector.now).toBe(server.attempts)
})

test('after it is closed it makes no further attempt, and gives the connection back', async () => {
  const { server, clock, reconnector } = start()
  await reconnector.get()
  server.isUp = false
  expect(await reconnector.close()).toBe(1)
  expect(reconnector.now).toBeUndefined()
  reconnector.connectSoon()
  clock.advance(10_000)
  await settle()
  expect(server.attempts).toBe(1)
})
