import type { WatchAction } from './action.js'
import type { History } from './history.js'
import type { SimulatedProcess } from './process.js'

const EXPECTED = new Set(['UNAVAILABLE', 'INDETERMINATE', 'CLOSED'])

interface Watcher {
  readonly process: SimulatedProcess
  readonly key: string
  readonly controller: AbortController
  /** The version that the watcher saw last. */
  version: number | undefined
  ended: boolean
}

/** Callers that watch keys of the store. */
export class Watchers {
  readonly #history: History
  readonly #all: Watcher[] = []

  constructor(history: History) {
    this.#history = history
  }

  begin(process: SimulatedProcess, { store, key }: WatchAction): void {
    const controller = new AbortController()
    const watcher: Watcher = { process, key: `${store}/${key}`, controller, version: undefined, ended: false }
    this.#all.push(watcher)
    process.deliver(() => void this.#follow(watcher, store, key))
  }

  /** Checks that all watchers have seen the last version. Call it after a while without changes and faults. */
  check(versionOf: (key: string) => number): void {
    for (const { process, key, version, ended } of this.#all) {
      if (ended || !process.open) continue
      const found = versionOf(key)
      if (version !== found)
        this.#history.violate('P5', `${process.name} watches ${key}, saw ${String(version)} and not ${found}`)
    }
  }

  stop(): void {
    for (const { controller } of this.#all) controller.abort('enough')
  }

  /** Checks that all watchers have ended. Call it once their requests have been answered. */
  checkEnded(): void {
    for (const { process, key, ended } of this.#all) {
      if (process.open && !ended) this.#history.violate('P8', `${process.name} goes on watching ${key}`)
    }
  }

  async #follow(watcher: Watcher, store: string, key: string): Promise<void> {
    const { process, controller } = watcher
    try {
      for await (const entry of process.stores.get(store)!.watch(key, controller.signal)) {
        const version = entry?.version ?? 0
        this.#history.note(process.name, 'sees', { key: watcher.key, version })
        watcher.version = version
      }
    } catch (error) {
      const { code } = error as { code?: string }
      if (code === undefined || !EXPECTED.has(code))
        this.#history.violate('P10', `a watcher gets ${String(error)}`)
      this.#history.note(process.name, `stops watching ${watcher.key}: ${String(code)}`)
    }
    watcher.ended = true
  }
}
