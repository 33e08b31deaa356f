import { expect, test } from 'vitest'
import { Box } from '../../../src/box.js'
import { VirtualClock } from '../../../src/base/clock.js'
import { FaultInjectingEngine } from '../../../packages/conformance/src/fault-injecting-engine.js'
import { openMemory } from '../../../src/engines/memory/memory-engine.js'
import { UnavailableError } from '../../../src/base/errors.js'
import { WATCH_READ_INTERVAL } from '../../../src/engine/wait-times.js'
import { ScriptedEngine, settle } from '../core/scripted-engine.js'

/** Opens a box that receives no hints, and another box of the same place. */
async function deafAndOther(url: string) {
  const clock = new VirtualClock()
  const engine = new FaultInjectingEngine(openMemory(url))
  engine.delivers = () => false
  return { clock, engine, deaf: await Box.join(engine, clock), other: await Box.join(openMemory(url), clock) }
}

test('a watcher that no hint reaches has each change within ten seconds', async () => {
  const { clock, engine, deaf, other } = await deafAndOther('memory:deaf watcher')
  const watch = deaf.store('s').watch('key')
  expect((await watch.next()).value).toBeUndefined()
  const next = watch.next()
  const version = await other.store('s').put('key', 'changed')
  await settle()
  expect(engine.count('read')).toBe(1)
  clock.advance(WATCH_READ_INTERVAL)
  expect(await next).toEqual({ done: false, value: { value: 'changed', version } })
  await watch.return()
  await Promise.all([deaf.close(), other.close()])
})

test('an observer that no hint reaches knows each leader within ten seconds', async () => {
  const { clock, deaf, other } = await deafAndOther('memory:deaf observer')
  const observing = deaf.election('e').observe()
  expect((await observing.next()).value).toBeUndefined()
  for (const label of ['first', 'second']) {
    const coming = observing.next()
    await settle()
    const term = await other.election('e').campaign({ label })
    clock.advance(WATCH_READ_INTERVAL)
    expect((await coming).value).toMatchObject({ label })
    const going = observing.next()
    await settle()
    await term.release()
    clock.advance(WATCH_READ_INTERVAL)
    expect((await going).value).toBeUndefined()
  }
  await observing.return()
  await Promise.all([deaf.close(), other.close()])
})

test('a watcher ends with the session, however that ended', async () => {
  const engine = new ScriptedEngine()
  const box = await Box.join(engine, new VirtualClock())
  const watch = box.store('s').watch('key')
  const first = watch.next()
  await settle()
  engine.take('watch').answer(undefined)
  await settle()
  engine.take('read').answer({ values: [{ value: '1', version: 1 }], seen: [] })
  await first
  const next = watch.next()
  await settle()
  engine.listener.ended(new UnavailableError('the session has expired'))
  await expect(next).rejects.toThrow('the session has expired')
  await box.close()
})
