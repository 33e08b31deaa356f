import { expect, test } from 'vitest'
import { Box } from '../../src/box.js'
import { VirtualClock } from '../../src/base/clock.js'
import { FaultInjectingEngine } from '../../packages/conformance/src/fault-injecting-engine.js'
import { openMemory } from '../../src/engines/memory/memory-engine.js'
import { InvalidArgumentError, UnavailableError } from '../../src/base/errors.js'
import { slotAt, type Slots } from '../../src/slots.js'

const at = (text: string): number => Date.parse(text)

function nameAt(slots: Slots, time: string): string {
  return slotAt('slots', slots, at(time)).name
}

test('a duration is that period of the wall clock in UTC', () => {
  expect(nameAt('1d', '2026-03-01T23:59:59.999Z')).toBe('1d from 2026-03-01T00:00:00.000Z')
  expect(nameAt('1d', '2026-03-02T00:00:00.000Z')).toBe('1d from 2026-03-02T00:00:00.000Z')
  expect(nameAt('15m', '2026-03-02T10:29:00Z')).toBe('15m from 2026-03-02T10:15:00.000Z')
})

test('a cron pattern makes periods from one of its times to the next', () => {
  const nightly = { cron: '0 3 * * *' }
  expect(nameAt(nightly, '2026-03-02T02:59:59.999Z')).toBe('0 3 * * * from 2026-03-01T03:00:00.000Z')
  expect(nameAt(nightly, '2026-03-02T03:00:00.000Z')).toBe('0 3 * * * from 2026-03-02T03:00:00.000Z')
  expect(nameAt(nightly, '2026-03-02T03:00:00.001Z')).toBe('0 3 * * * from 2026-03-02T03:00:00.000Z')
})

test('a time zone moves the times of a pattern, also when its clocks change', () => {
  const vienna = { cron: '0 3 * * *', timeZone: 'Europe/Vienna' }
  expect(nameAt(vienna, '2026-03-28T12:00:00Z')).toBe('0 3 * * * from 2026-03-28T02:00:00.000Z')
  expect(nameAt(vienna, '2026-03-29T12:00:00Z')).toBe('0 3 * * * from 2026-03-29T01:00:00.000Z')
})

test.each(['release 7', '2026-11-26', '9 to 5 on a day', 'daily-2026-11-26', '7 may'])(
  'any other text is a slot of its own: %s',
  name => expect(slotAt('slots', name, 0)).toEqual({ name }),
)

test.each<[unknown, RegExp]>([
  ['', /slots must be a text, \{ cron \} or \{ every \}, not ""/],
  [7, /slots must be a text, \{ cron \} or \{ every \}, not 7/],
  ['0s', /slots must be from 1 ms to 3153600000000 ms/],
  [`${'9'.repeat(400)}d`, /slots must be from 1 ms to/],
  ['1d ', /not "1d "/],
  ['PT1H', /not "PT1H"/],
  ['? ? * * *', /\{ cron \} in code/],
  ['a\0b', /well-formed Unicode without NUL/],
  ['x'.repeat(1025), /string of 1 to 1024 characters/],
  ['1day', /slots must be a duration/],
  ['0 3 * * *', /\{ cron \} in code/],
  [{ cron: 'at noon' }, /cron must be a pattern/],
  [{}, /slots must be like { cron: .* } or { every: .* }/],
  [{ cron: '0 3 * * *', every: '1d' }, /slots must have either cron or every, not both/],
  [{ cron: '0 3 * * *', timeZone: 'Europe/Atlantis' }, /timeZone must be a name .* not "Europe\/Atlantis"/],
  [{ cron: '0 3 * * *', timezone: 'UTC' }, /unknown option "timezone"; it must be one of cron, timeZone/],
  [{ cron: '0 0 3 1 1 * 2099' }, /a time in the past/],
  [{ every: '1 day' }, /every must be milliseconds or a string like '5s' .* not "1 day"/],
  [{ every: 0 }, /every must be from 1 ms/],
  [{ every: '1d', timeZone: 'UTC' }, /unknown option "timeZone"; it must be every/],
])('%j is refused', (slots, message) => {
  const refused = (): unknown => slotAt('slots', slots as Slots, at('2026-03-02T03:00:00Z'))
  expect(refused).toThrow(InvalidArgumentError)
  expect(refused).toThrow(message)
})

test('a process whose clock is less than an hour behind does nothing for a slot that is over', async () => {
  const start = at('2026-03-02T00:20:00Z')
  const boxOf = (clock: VirtualClock): Promise<Box> => Box.join(openMemory('memory:slow clock'), clock)
  const [ahead, behind] = [
    await boxOf(new VirtualClock(start)),
    await boxOf(new VirtualClock(start - 3_000_000)),
  ]
  expect(await ahead.oncePer('nightly', '1d', (_, slot) => slot)).toMatchObject({
    ran: true,
    result: { name: '1d from 2026-03-02T00:00:00.000Z', at: new Date('2026-03-02T00:00:00Z') },
  })
  expect(await behind.oncePer('nightly', { every: '1d' }, () => 'done')).toEqual({
    ran: false,
    slot: { name: '1d from 2026-03-01T00:00:00.000Z', at: new Date('2026-03-01T00:00:00Z') },
  })
  await Promise.all([ahead.close(), behind.close()])
})

test("slots use the engine's clock, and the own one where that is up to a minute ahead", async () => {
  const engine = new FaultInjectingEngine(openMemory('memory:'))
  const shared = at('2026-03-01T23:59:30Z')
  engine.wallClock = () => Promise.resolve(shared)
  const clock = new VirtualClock(shared - 400 * 86_400_000)
  const box = await Box.join(engine, clock)
  const slotNow = async (name: string): Promise<string> =>
    (await box.oncePer(name, '1d', () => undefined)).slot.name
  const [yesterday, today] = ['1d from 2026-03-01T00:00:00.000Z', '1d from 2026-03-02T00:00:00.000Z']
  expect(await slotNow('far behind')).toBe(yesterday)
  clock.advance(400 * 86_400_000 + 29_000)
  expect(await slotNow('29 s ahead')).toBe(yesterday)
  clock.advance(2000)
  expect(await slotNow('31 s ahead')).toBe(today)
  clock.advance(30_000)
  expect(await slotNow('61 s ahead')).toBe(yesterday)
  await box.close()
})

test('a slot that a clock far ahead has done does not stop the slots now, and is not done again in its time', async () => {
  const start = at('2026-03-02T12:00:00Z')
  const far = 400 * 86_400_000
  const clocks = [new VirtualClock(start + far), new VirtualClock(start)] as const
  const [ahead, right] = await Promise.all(
    clocks.map(clock => Box.join(openMemory('memory:far clock'), clock)),
  )
  const ran = async (box: Box, slots: Slots): Promise<boolean> =>
    (await box.oncePer('nightly', slots, () => undefined)).ran
  for (const slots of ['1d', { cron: '0 3 * * *' }]) {
    expect(await ran(ahead!, slots)).toBe(true)
    expect(await ran(right!, slots)).toBe(true)
  }
  clocks[1].advance(86_400_000)
  expect(await ran(right!, '1d')).toBe(true)
  expect(await ran(ahead!, '1d')).toBe(false)
  clocks[1].advance(far - 86_400_000)
  expect(await ran(right!, '1d')).toBe(false)
  await Promise.all([ahead!.close(), right!.close()])
})

test('the last 100 slots of a name are remembered, periods and names together', async () => {
  const box = await Box.join(openMemory('memory:'), new VirtualClock(0))
  const ran = async (slot: string): Promise<boolean> =>
    (await box.oncePer('deploy', slot, () => undefined)).ran
  for (let release = 1; release <= 100; release++) expect(await ran(`release ${release}`)).toBe(true)
  expect(await ran('release 1')).toBe(false)
  expect(await ran('1d')).toBe(true)
  expect(await ran('release 2')).toBe(false)
  expect(await ran('release 1')).toBe(true)
  const { value } = (await box.store('signalbox-runs').get<{ earlier: unknown[] }>('deploy'))!
  expect(value.earlier).toHaveLength(99)
  await box.close()
})

test('records of an early build count, and it can read new records', async () => {
  const box = await Box.join(openMemory('memory:'), new VirtualClock(0))
  const runs = box.store('signalbox-runs')
  await runs.put('deploy', { name: 'release 7' })
  const ran = async (slot: string): Promise<boolean> =>
    (await box.oncePer('deploy', slot, () => undefined)).ran
  expect(await ran('release 7')).toBe(false)
  expect(await ran('release 8')).toBe(true)
  expect((await runs.get('deploy'))!.value).toEqual({ name: 'release 8', earlier: [{ name: 'release 7' }] })
  await box.close()
})

test('an error says whether the task ran', async () => {
  const engine = new FaultInjectingEngine(openMemory('memory:'))
  const box = await Box.join(engine, new VirtualClock(0))
  const outage = new UnavailableError('an outage')
  engine.fail(['read'], outage)
  const task = (): string => {
    engine.fail(['commit'], outage)
    return 'done'
  }
  await expect(box.oncePer('nightly', '1d', task)).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    taskBegan: false,
  })
  engine.restore()
  await expect(box.oncePer('nightly', '1d', task)).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    taskBegan: true,
  })
  engine.restore()
  const failing = box.oncePer('nightly', '1d', () => Promise.reject(outage))
  await expect(failing).rejects.toBe(outage)
  await expect(box.oncePer('nightly', '1d', 'task' as never)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    taskBegan: false,
  })
  await box.close()
})

test.each([null, 5, 'text', [], {}, { name: 5 }, { name: 'a', begins: '0' }, { name: 'a', earlier: 5 }])(
  'a record that something else has written (%j) is refused, because the task may have been done',
  async record => {
    const box = await Box.join(openMemory('memory:'), new VirtualClock(0))
    const runs = box.store('signalbox-runs')
    await runs.put('nightly', record)
    const refused = {
      code: 'UNAVAILABLE',
      message: expect.stringContaining('not a record of schedule or oncePer') as string,
    }
    const done = (): Promise<unknown> => box.oncePer('nightly', '1d', () => 'done')
    await expect(done()).rejects.toMatchObject({ ...refused, taskBegan: false })
    await runs.delete('nightly')
    expect(await done()).toMatchObject({ ran: true })
    await box.close()
  },
)

test.each(['undefined', 'null', 'NaN', 'true', 'false', '[object Object]', 'Invalid Date', 'Infinity'])(
  'a slot named %s, as a missing value is written, is refused',
  async slot => {
    const box = await Box.join(openMemory('memory:'), new VirtualClock(0))
    await expect(box.oncePer('deploy', slot, () => 'done')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    await box.close()
  },
)
