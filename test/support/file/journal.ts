import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'

/** A contender, which is a process or a thread, has entered. Times are of the system's monotonic clock. */
export interface Entrance {
  readonly what: 'in'
  readonly who: string
  readonly keys: readonly string[]
  readonly token: string
  readonly at: number
  readonly waited: number
}

/** A contender leaves, or is about to be killed. */
export interface Exit {
  readonly what: 'out' | 'killed'
  readonly who: string
  readonly at: number
}

export type JournalEntry = Entrance | Exit

/** The evaluation of a whole journal. */
export interface Verdict {
  readonly rounds: number
  /** Number of contenders that were killed while they held keys. */
  readonly killedInside: number
  /** The longest wait for keys, in milliseconds. */
  readonly longestWait: number
  /** Messages about violations. */
  readonly wrongs: readonly string[]
}

/** A file in which several processes record events, in order. */
export class Journal {
  constructor(readonly path: string) {
    writeFileSync(path, '')
  }

  /** Records a kill just before it. A contender that enters after this line enters after the dead one. */
  killing(who: string, at: number): void {
    appendFileSync(this.path, `${JSON.stringify({ what: 'killed', who, at } satisfies JournalEntry)}\n`)
  }

  entries(): JournalEntry[] {
    const lines = readFileSync(this.path, 'utf8').split('\n').slice(0, -1)
    return lines.map(line => JSON.parse(line) as JournalEntry)
  }

  /** Returns the number of rounds of one contender, or of all. */
  rounds(who?: string): number {
    return this.entries().filter(entry => entry.what === 'out' && (who === undefined || entry.who === who))
      .length
  }

  /** Returns the contenders that hold keys. */
  inside(): string[] {
    const inside = new Set<string>()
    for (const { what, who } of this.entries()) {
      if (what === 'in') inside.add(who)
      else inside.delete(who)
    }
    return [...inside]
  }

  judge(): Verdict {
    const inside = new Map<string, Entrance>()
    const holder = new Map<string, string>()
    const lastToken = new Map<string, bigint>()
    const dead = new Set<string>()
    const wrongs: string[] = []
    let [rounds, killedInside, longestWait] = [0, 0, 0]
    const leave = (who: string): boolean => {
      for (const key of inside.get(who)?.keys ?? []) if (holder.get(key) === who) holder.delete(key)
      return inside.delete(who)
    }
    for (const entry of this.entries()) {
      const { who } = entry
      if (entry.what === 'in') {
        longestWait = Math.max(longestWait, entry.waited)
        for (const key of entry.keys) {
          const other = holder.get(key)
          if (other !== undefined) wrongs.push(`${who} came to ${key} while ${other} was there`)
          const token = BigInt(entry.token)
          if (token <= (lastToken.get(key) ?? 0n)) wrongs.push(`the token of ${key} fell to ${token}`)
          lastToken.set(key, token)
          // A contender may still write this line after its kill was recorded.
          if (!dead.has(who)) holder.set(key, who)
        }
        if (!dead.has(who)) inside.set(who, entry)
      } else if (entry.what === 'out') {
        rounds++
        leave(who)
      } else {
        dead.add(who)
        if (leave(who)) killedInside++
      }
    }
    return { rounds, killedInside, longestWait, wrongs }
  }
}
