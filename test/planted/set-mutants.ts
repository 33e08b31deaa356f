import type { Mutant } from './mutated-copy.js'

/** Mistakes in sets of keys on Hazelcast. Random runs must find each of them. */
export const setMutants: readonly Mutant[] = [
  {
    id: 'no-kill-mark',
    description: 'a key is freed from a set that may still come to its home',
    wrong: '',
  },
  {
    id: 'home-again',
    description: 'a set comes to its home again after other boxes have freed its keys',
    wrong: `if (onlyFree && !isFree(state, machine, request, claim, now)) return { state: 'blocked', number }
      else state.appendPart(request, terms.lease, ttl)`,
  },
  {
    id: 'stand-after-grant',
    description: 'a late hint makes a set that has ended enter its queues again',
    wrong: '',
  },
  {
    id: 'apply-without-pointer',
    description: 'a commit is written to a key that the set has left',
    wrong: 'if (!part) return void state.apply(change)',
  },
  {
    id: 'commit-not-kept',
    description: 'a commit is known only to its own box',
    wrong: '',
  },
  {
    id: 'unclear-commit-undone',
    description: 'keys are released although their set may have committed',
    wrong: `{
      const [left] = await Promise.all([this.#atHome(request, leaveHome), this.#leaveOthers(request, number)])
      if (number >= 0) return left
    }`,
  },
  {
    id: 'commit-ignores-overwritten',
    description: 'a commit overwrites what was written without a lock',
    wrong: '',
  },
  {
    id: 'number-not-raised',
    description: 'a key does not learn the number of a set that leaves it',
    wrong: '',
  },
  {
    id: 'shared-keys-keep-numbers',
    description: 'keys that a set shares do not learn its number',
    wrong: 'const greatest = 0',
  },
  {
    id: 'free-keys-keep-numbers',
    description: 'keys that a set takes at once do not learn its number',
    wrong: '',
  },
  {
    id: 'downgraded-keys-keep-numbers',
    description: 'keys that a set shares after a downgrade do not learn its number',
    wrong: '',
  },
  {
    id: 'delete-above-floor',
    description: 'an entry is deleted without its numbers being kept',
    wrong: '',
  },
  {
    id: 'enter-without-room',
    description: 'sets that wait enter the queues of their keys at the same time',
    wrong: '',
  },
  {
    id: 'pass-waiting-room',
    description: 'a set takes a free key before sets that wait for it in the waiting room',
    wrong: 'else if (false)',
  },
  {
    id: 'take-without-end',
    description: 'a grant is taken from a box whose sign can still renew it',
    wrong: '',
  },
  {
    id: 'sign-not-ended',
    description: 'a sign is taken for ended that its box goes on to send',
    wrong: 'const isEnded = true',
  },
]
