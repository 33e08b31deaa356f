import { expect, test } from 'vitest'
import { Box } from '../../src/box.js'
import { VirtualClock } from '../../src/clock.js'
import { MeddledEngine } from '../../src/conformance/meddled-engine.js'
import { openMemory } from '../../src/engines/memory/open.js'
import { InvalidArgumentError, UnavailableError } from '../../src/errors.js'
import { slotAt, type Slots } from '../../src/once.js'

const at = (text: string): number => Date.parse(text)

async function nameAt(slots: Slots, time: string): Promise<string> {
  return (await slotAt('slots', slots, at(time))).name
}

test('a duration is that period of the wall clock in UTC', async () => {
  expect(await nameAt('1d', '2026-03-01T23:59:59.999Z')).toBe('1d from 2026-03-01T00:00:00.000Z')
  expect(await nameAt('1d', '2026-03-02T00:00:00.000Z')).toBe('1d from 2026-03-02T00:00:00.000Z')
  expect(await nameAt('15m', '2026-03-02T10:29:00Z')).toBe('15m from 2026-03-02T10:15:00.000Z')
})

test('a cron pattern makes periods from one of its times to the next', async () => {
  const nightly = { cron: '0 3 * * *' }
  expect(await nameAt(nightly, '2026-03-02T02:59:59.999Z')).toBe('0 3 * * * from 2026-03-01T03:00:00.000Z')
  expect(await nameAt(nightly, '2026-03-02T03:00:00.000Z')).toBe('0 3 * * * from 2026-03-02T03:00:00.000Z')
  expect(await nameAt(nightly, '2026-03-02T03:00:00.001Z')).toBe('0 3 * * * from 2026-03-02T03:00:00.000Z')
})

test('a time zone moves the times of a pattern, also when its clocks change', async () => {
  const vienna = { cron: '0 3 * * *', timezone: 'Europe/Vienna' }
  expect(await nameAt(vienna, '2026-03-28T12:00:00Z')).toBe('0 3 * * * from 2026-03-28T02:00:00.000Z')
  expect(await nameAt(vienna, '2026-03-29T12:00:00Z')).toBe('0 3 * * * from 2026-03-29T01:00:00.000Z')
})

test.each(['release 7', 'monday', '7', '2026-11-26', '1234abc', '9 to 5 on a day'])(
  'any other text is a slot of its own: %s',
  async name => expect(await slotAt('slots', name, 0)).toEqual({ name, begins: undefined }),
)

test.each<[unknown, RegExp]>([
  ['', /slots takes a text or \{ cron \}, not ""/],
  [7, /slots takes a text or \{ cron \}, not 7/],
  ['0s', /slots takes 1 ms to no limit/],
  ['24 h', /slots takes a duration like '1d' .* not "24 h"/],
  ['1day', /slots takes a duration/],
  ['1D', /slots takes a duration/],
  ['0 3 * * *', /in code \{ cron \}/],
  ['0 3 * * mon-fri', /in code \{ cron \}/],
  ['*/5 * * * *', /in code \{ cron \}/],
  [{ cron: 'at noon' }, /cron takes a pattern/],
  [{ cron: '0 3 * * *', timezone: 'Europe/Atlantis' }, /"Europe\/Atlantis"/],
  [{ cron: '0 3 * * *', zone: 'UTC' }, /no option "zone"/],
  [{ cron: '0 0 3 1 1 * 2099' }, /no time in the past/],
])('%j is refused', async (slots, message) => {
  const refused = slotAt('slots', slots as Slots, at('2026-03-02T03:00:00Z'))
  await expect(refused).rejects.toThrow(InvalidArgumentError)
  await expect(refused).rejects.toThrow(message)
})

test('a process whose clock is behind does nothing for a slot that is over', async () => {
  const start = at('2026-03-02T12:00:00Z')
  const boxOf = (clock: VirtualClock): Promise<Box> => Box.join(openMemory('memory:slow clock'), clock)
  const [ahead, behind] = [
    await boxOf(new VirtualClock(start)),
    await boxOf(new VirtualClock(start - 86_400_000)),
  ]
  expect(await ahead.oncePer('nightly', '1d', (_, slot) => slot)).toMatchObject({
    ran: true,
    result: '1d from 2026-03-02T00:00:00.000Z',
  })
  expect(await behind.oncePer('nightly', '1d', () => 'done')).toEqual({
    ran: false,
    slot: '1d from 2026-03-01T00:00:00.000Z',
  })
  await Promise.all([ahead.close(), behind.close()])
})

test('an error says whether the task ran', async () => {
  const engine = new MeddledEngine(openMemory('memory:'))
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
