import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { ServerClock } from '../../../../src/engines/postgres/server-clock.js'

test('the time is not ahead of the server, and the closest replies count', () => {
  const clock = new VirtualClock(1000)
  const server = new ServerClock(clock)
  expect(server.isKnown).toBe(false)
  // Sent at 1000, replied to at 1010. The server's clock is 500 ahead, and was read at 1002.
  clock.advance(10)
  server.observe(1502, 1000)
  expect(server.now()).toEqual({ at: 1502, earliest: 1000, latest: 1010 })
  // The second clock was read at 1019, and its reply arrived at once.
  clock.advance(10)
  server.observe(1519, 1018)
  expect(server.now()).toEqual({ at: 1519, earliest: 1018, latest: 1020 })
  // A slow reply is less precise, and changes nothing.
  clock.advance(100)
  server.observe(1560, 1020)
  expect(server.now().at).toBe(1619)
})

test('if the server’s clock was set, only its newest reply counts', () => {
  const clock = new VirtualClock(1000)
  const server = new ServerClock(clock)
  clock.advance(10)
  server.observe(1505, 1000)
  clock.advance(10)
  server.observe(9015, 1010)
  expect(server.now().at).toBe(9015)
  clock.advance(10)
  server.observe(1000, 1020)
  expect(server.now().at).toBe(1000)
})

test('a decision for a distant server is made for about the time of its arrival', () => {
  const clock = new VirtualClock(1000)
  const server = new ServerClock(clock)
  // Each direction takes 400. The server's clock is 500 ahead.
  clock.advance(800)
  server.observe(1900, 1000)
  // A decision that is sent now arrives at 2700 by the server's clock.
  expect(server.now()).toEqual({ at: 2600, earliest: 1700, latest: 2500 })
})
