import type { Mistake } from '../faulty-copy.js'

const ATTEMPT = 'store/records/commit-attempt.ts'
const LEDGER = 'store/records/ledger.ts'
const LONE = 'store/records/lone-write.ts'
const RECORD = 'store/records/key-record.ts'
const SETTLER = 'store/records/settler.ts'

/** Each has to be found in the small scopes. */
export const mistakes: readonly Mistake[] = [
  {
    name: 'what was written meanwhile is written over',
    file: SETTLER,
    text: 'if (now.record.version === seen.record.version) return now',
    wrong: 'return now',
  },
  {
    name: 'what was only read is not looked at',
    file: LEDGER,
    text: 'const keys = expect.map(({ key }) => key)',
    wrong: 'const keys = writes.map(({ key }) => key)',
  },
  {
    name: 'a commit leaves no token',
    file: RECORD,
    text: 'token: token > record.token ? token : record.token,',
    wrong: 'token: record.token,',
  },
  {
    name: 'a larger token is overlooked',
    file: SETTLER,
    text: '(token > looker || (stamp && stamp.token > looker))',
    wrong: 'stamp && stamp.token > looker',
  },
  {
    name: 'only the first key is written',
    file: SETTLER,
    text: 'const others = transaction.others.map(key =>',
    wrong: 'const others = transaction.others.slice(1).map(key =>',
  },
  {
    name: 'what was committed is rolled back',
    file: SETTLER,
    text: "state === 'committed'\n          ?",
    wrong: 'known\n          ?',
  },
  {
    name: 'a holder leaves alone what is pending',
    file: SETTLER,
    text: "else if (looker === 'reader') return",
    wrong: "else if (looker !== 'writer') return",
  },
  {
    name: 'what was aborted is committed all the same',
    file: ATTEMPT,
    text: "if (decision === 'aborted') return this.#whyAborted([first, ...others])",
    wrong: "if (decision === 'aborted') return COMMITTED",
  },
  {
    name: 'a stamp is set over another state than was read',
    file: ATTEMPT,
    text: "if (swap.state === 'written') return swap.now\n      const found",
    wrong:
      "if (swap.state === 'written') return swap.now\n      if (swap.state === 'refused') return { ...seen, record: stamped(seen.record, stamp) }\n      const found",
  },
  {
    name: 'a lost answer is taken for a refusal',
    file: LONE,
    text: 'const marked = await shelf.swap(key, now, decidedIn(now.record, attempt, false))',
    wrong: "const marked = { state: 'written' }",
  },
  {
    name: 'a refusal of what was written before is believed',
    file: LONE,
    text: 'if (isDecided(now.record, attempt, true)) return true',
    wrong: '',
  },
  { name: 'ids are not recorded', file: RECORD, text: 'ids: new Map(kept),', wrong: 'ids: record.ids,' },
]
