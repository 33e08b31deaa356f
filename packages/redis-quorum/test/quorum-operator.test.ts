import { expect, test } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import type { IdentifiedReport } from 'signalbox/redis'
import { Electorate } from '../src/electorate.js'
import { NumberClock } from '../src/number-clock.js'
import { QuorumOperator } from '../src/quorum-operator.js'
import type { Voter } from '../src/voter.js'

function report(id: string, phase: 'held' | 'waiting'): IdentifiedReport {
  return {
    id,
    order: id,
    key: 'key',
    session: id,
    host: 'host',
    pid: 1,
    label: undefined,
    claim: { key: 'key', mode: 'exclusive' },
    phase,
    number: phase === 'held' ? 7 : 0,
    age: 10,
    expiresIn: 1000,
  }
}

/**
 * Inspects three servers with these reports. The first server, and those that are `'late'`, answer only when `answer`
 * is called.
 */
function inspected(
  first: readonly IdentifiedReport[],
  ...others: readonly (readonly IdentifiedReport[] | 'late')[]
) {
  const clock = new VirtualClock()
  let answer: () => void = () => undefined
  const late = new Promise<void>(resolve => (answer = resolve)).then(() => first)
  const all = [late, ...others.map(other => (other === 'late' ? late : other))]
  const voters = all.map(reports => ({ reports: async () => reports }) as unknown as Voter)
  const electorate = new Electorate('quorum', voters, new NumberClock(), clock)
  const shown = new QuorumOperator(electorate).inspect({ type: 'inspect', prefix: '' })
  return { clock, answer, shown: shown.then(all => all.map(({ session, phase }) => `${session} ${phase}`)) }
}

const settle = () => new Promise(resolve => setImmediate(resolve))

test('a waiter with one vote is not a holder while the server of another one answers late', async () => {
  const { clock, answer, shown } = inspected(
    [report('holder', 'held'), report('waiter', 'waiting')],
    [report('holder', 'held'), report('waiter', 'waiting')],
    [report('waiter', 'held')],
  )
  await settle()
  clock.advance(500)
  answer()
  expect(await shown).toEqual(['holder held', 'waiter waiting'])
})

test('a server that does not answer within a second is left out', async () => {
  const { clock, shown } = inspected([], [report('holder', 'held')], [report('holder', 'held')])
  await settle()
  clock.advance(20)
  clock.advance(1000)
  expect(await shown).toEqual(['holder held'])
})

test('servers that are far away are waited for until they answer or their clients give up', async () => {
  const holder = [report('holder', 'held')]
  const { clock, answer, shown } = inspected(holder, 'late', 'late')
  await settle()
  clock.advance(20)
  clock.advance(1000)
  await settle()
  clock.advance(1000)
  answer()
  expect(await shown).toEqual(['holder held'])
})
