import type { Clock } from '../../../../src/base/clock.js'

interface Row {
  version: number
  content: string
}

interface LeftRequest {
  readonly since: number
  readonly id: string
  readonly request: string
  answer?: string
}

type Texts = readonly string[]

/** The rows of limiters in a server, with the rules of the function `decide_limiters`. */
export class LimiterRows {
  readonly #clock: Clock
  readonly #rows = new Map<string, Row>()
  /** The requests that boxes have left for others to decide, by limiter. */
  readonly left = new Map<string, LeftRequest[]>()
  /** Number of stored decisions, and of outdated ones. */
  stored = 0
  outdated = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  decide(values: Texts): string {
    const now = this.#clock.now()
    const [names, versions, , , contents, requests, answers] = values.map(listOf)
    const [decided, slack] = [Number(values[2]), Number(values[3])]
    const isTimely = decided <= now && now - decided <= slack
    const kept = names!.map((name, index) => {
      const row = this.#rows.get(name)
      const isKept = isTimely && Number(versions![index]) === (row?.version ?? 0)
      let left = this.left.get(name) ?? []
      const found: (readonly [string, string])[] = []
      if (isKept) {
        this.stored++
        this.#rows.set(name, { version: (row?.version ?? 0) + 1, content: contents![index]! })
        for (const [, id, answer] of entriesOf(answers![index]!)) {
          if (answer !== null) left.find(each => each.id === id)!.answer = answer
          else left = left.filter(each => each.id !== id)
        }
      } else {
        this.outdated++
        for (const [since, id, request] of entriesOf(requests![index]!)) {
          const known = left.find(each => each.id === id)
          if (!known) left.push({ since, id, request: request! })
          else if (known.answer !== undefined) found.push([id, known.answer])
        }
        left = left.filter(({ id }) => !found.some(([foundId]) => foundId === id))
      }
      this.left.set(name, left)
      const open = left.filter(({ answer }) => answer === undefined)
      return [
        isKept,
        this.#rows.get(name)?.version ?? 0,
        isKept ? null : (row?.content ?? null),
        found,
        isKept ? open.map(({ since, id, request }) => [since, id, request]) : null,
      ]
    })
    return JSON.stringify([isTimely, Math.floor(now), kept, [0, 0]])
  }
}

type Entry = readonly [since: number, id: string, text: string | null]

function entriesOf(text: string): readonly Entry[] {
  return text === '' ? [] : (JSON.parse(text) as readonly Entry[])
}

/** Parses a PostgreSQL array of texts or numbers. */
function listOf(text: string): readonly string[] {
  if (!text.startsWith('{')) return [text]
  const matches = [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|[^,]+/g)]
  return matches.map(([whole, quoted]) => quoted?.replaceAll(/\\(.)/g, '$1') ?? whole)
}
