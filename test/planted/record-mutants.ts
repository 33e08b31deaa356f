import type { Mutant } from './mutated-copy.js'

/** Mutants that the small scopes must find. */
export const recordMutants: readonly Mutant[] = [
  {
    id: 'overwrite-newer',
    description: 'what was written meanwhile is written over',
    wrong: 'return now',
  },
  {
    id: 'ignore-read-keys',
    description: 'what was only read is not looked at',
    wrong: 'const keys = writes.map(({ key }) => key)',
  },
  {
    id: 'commit-without-token',
    description: 'a commit leaves no token',
    wrong: 'token: record.token',
  },
  {
    id: 'ignore-larger-token',
    description: 'a larger token is overlooked',
    wrong: "if (typeof looker === 'bigint' && stamp && stamp.token > looker) return 'lost'",
  },
  {
    id: 'write-first-key-only',
    description: 'only the first key is written',
    wrong: `const others = transaction.others
      .slice(1)
      .map(key => this.#finishOther(key, transaction, known?.get(key)))`,
  },
  {
    id: 'roll-back-committed',
    description: 'what was committed is rolled back',
    wrong: `const after = known
        ? changed(unstamped(seen.record), changes.get(key)!, token, until, this.#records.now())
        : withoutStamp(seen.record, attempt)`,
  },
  {
    id: 'holder-ignores-pending',
    description: 'a holder leaves alone what is pending',
    wrong: `if (looker !== 'writer') return { ...seen, record: unstamped(seen.record) }
      else await this.#write(at, primary, stamped(primary.record, { ...transaction, state: 'aborted' }))`,
  },
  {
    id: 'commit-aborted',
    description: 'what was aborted is committed all the same',
    wrong: "if (decision === 'aborted') return COMMITTED",
  },
  {
    id: 'stamp-over-change',
    description: 'a stamp is set over another state than was read',
    wrong: `if (swap.state === 'written') return swap.now
      if (swap.state === 'refused') return { ...seen, record: stamped(seen.record, stamp) }`,
  },
  {
    id: 'lost-answer-as-refusal',
    description: 'a lost answer is taken for a refusal',
    wrong: "const marked = { state: 'written' }",
  },
  {
    id: 'believe-repeated-refusal',
    description: 'a refusal of what was written before is believed',
    wrong: '',
  },
  {
    id: 'record-without-ids',
    description: 'ids are not recorded',
    wrong: 'ids: record.ids',
  },
]
