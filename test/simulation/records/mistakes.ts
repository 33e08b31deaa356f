import type { Mistake } from '../faulty-copy.js'

/** Each has to be found in the small scopes. */
export const mistakes: readonly Mistake[] = [
  {
    name: 'what was written meanwhile is written over',
    wrong: 'return now',
  },
  {
    name: 'what was only read is not looked at',
    wrong: 'const keys = writes.map(({ key }) => key)',
  },
  {
    name: 'a commit leaves no token',
    wrong: 'token: record.token',
  },
  {
    name: 'a larger token is overlooked',
    wrong: "if (typeof looker === 'bigint' && stamp && stamp.token > looker) return 'lost'",
  },
  {
    name: 'only the first key is written',
    wrong: `const others = transaction.others
      .slice(1)
      .map(key => this.#finishOther(key, transaction, known?.get(key)))`,
  },
  {
    name: 'what was committed is rolled back',
    wrong: `const after = known
        ? changed(unstamped(seen.record), changes.get(key)!, token, until, this.#shelf.now())
        : withoutStamp(seen.record, attempt)`,
  },
  {
    name: 'a holder leaves alone what is pending',
    wrong: `if (looker !== 'writer') return { ...seen, record: unstamped(seen.record) }
      else await this.#write(at, primary, stamped(primary.record, { ...transaction, state: 'aborted' }))`,
  },
  {
    name: 'what was aborted is committed all the same',
    wrong: "if (decision === 'aborted') return COMMITTED",
  },
  {
    name: 'a stamp is set over another state than was read',
    wrong: `if (swap.state === 'written') return swap.now
      if (swap.state === 'refused') return { ...seen, record: stamped(seen.record, stamp) }`,
  },
  {
    name: 'a lost answer is taken for a refusal',
    wrong: "const marked = { state: 'written' }",
  },
  {
    name: 'a refusal of what was written before is believed',
    wrong: '',
  },
  {
    name: 'ids are not recorded',
    wrong: 'ids: record.ids',
  },
]
