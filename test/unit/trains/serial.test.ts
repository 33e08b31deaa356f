import fc from 'fast-check'
import { expect, test } from 'vitest'
import { locationKey, type LocationCounts } from '../../../apps/trains/domain/location.js'
import { registry } from '../../../apps/trains/messages/registry.js'
import { countsOf } from '../../../apps/trains/report/comparison.js'
import { SerialResult } from '../../../apps/trains/serial.js'
import { FakeTransaction, SharedState } from './fake-store.js'

test('agrees with the message types on any stream', () => {
  const some = (...values: string[]) => fc.constantFrom(...values)
  const message = fc.oneof(
    fc.record({ type: some('create'), train: some('T', 'U', 'A'), location: some('A', 'B', 'C') }),
    fc.record({ type: some('move'), train: some('T', 'U', 'A'), to: some('A', 'B', 'C') }),
    fc.record({ type: some('delete'), train: some('T', 'U', 'A') }),
  )
  const everyKey = ['T', 'U', 'A', 'B', 'C'].flatMap(name => [`TRA_${name}`, `LOC_${name}`])
  fc.assert(
    fc.property(fc.array(message, { maxLength: 40 }), messages => {
      const serial = new SerialResult()
      const state = new SharedState()
      const events = new Map<string, number>()
      for (const [index, one] of messages.entries()) {
        serial.apply(one)
        const valid = registry.validate({ id: String(index), ...one })
        const transaction = new FakeTransaction(state, everyKey)
        const { event } = registry.typeOf(valid).handle(valid, transaction)
        transaction.commit()
        events.set(event, (events.get(event) ?? 0) + 1)
      }
      const { created, moved, deleted, ignored } = serial.totals
      expect([created, moved, deleted, ignored]).toEqual(
        ['created', 'moved', 'deleted', 'ignored'].map(event => events.get(event) ?? 0),
      )
      for (const location of ['A', 'B', 'C']) {
        const text = state.values.get(locationKey(location))
        const found = text === undefined ? undefined : (JSON.parse(text) as LocationCounts)
        expect(countsOf(serial.locations.get(location))).toEqual(countsOf(found))
      }
    }),
    { numRuns: 300 },
  )
})
