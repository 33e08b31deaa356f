import type { TrainStore } from './store.js'

/**
 * A store without locks and version checks, which overwrites concurrent updates. It shows that the comparison with the
 * serial result detects lost updates.
 */
export function unlockedStore(store: Pick<TrainStore, 'get' | 'put' | 'delete'>): TrainStore {
  const read = async (key: string): Promise<unknown> => (await store.get(key))?.value
  return {
    get: key => store.get(key),
    put: (key, value) => store.put(key, value),
    delete: key => store.delete(key),
    async transaction(keys, change) {
      const values = new Map<string, unknown>()
      for (const key of await keys(read)) values.set(key, await read(key))
      const writes: (() => Promise<unknown>)[] = []
      const result = await change({
        get: key => values.get(key),
        put: (key, value) => writes.push(() => store.put(key, value)),
        delete: key => writes.push(() => store.delete(key)),
        committed: () => false,
      })
      for (const write of writes) await write()
      return { applied: true, result }
    },
  }
}
