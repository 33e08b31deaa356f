import type { StoreCall } from '../history.js'
import type { Operation } from './linearizable.js'

/** Converts the calls of one key to operations on its value, for {@link linearizable}. The key is absent at first. */
export function storeOperations(calls: readonly StoreCall[]): Operation<string>[] {
  return calls.flatMap(call => {
    const { kind, from, until, value = '', end } = call
    if (end === 'refused') return []
    if (end === undefined || end === 'unknown') {
      // A write with an unknown outcome is kept even if no call read its value, because it may explain a conflict.
      if (kind === 'get') return []
      return [{ from, apply: state => written(call, state) }]
    }
    const ended = { from, until: until! }
    if (kind === 'get') return [{ ...ended, apply: state => (state === value ? state : undefined) }]
    if (end === 'conflict')
      return [{ ...ended, apply: state => (state === call.expected ? undefined : state) }]
    return [{ ...ended, apply: state => written(call, state) }]
  })
}

function written({ kind, value = '', expected }: StoreCall, state: string): string | undefined {
  return kind === 'put' || state === expected ? value : undefined
}
