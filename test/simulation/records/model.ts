/** The values of a store by key, and the recorded IDs as `key:id`. */
export interface State {
  readonly values: ReadonlyMap<string, number>
  readonly ids: ReadonlySet<string>
}

/** One transaction or single write, described as if it ran alone. */
export interface Action {
  /** The keys that it claims. The first one carries its ID. */
  readonly keys: readonly string[]
  /** Token of its locks; 0 for a write without locks. */
  readonly token: number
  readonly id?: string
  /** Returns its writes for the values that it has read; undefined deletes a key. */
  readonly work: (read: ReadonlyMap<string, number>) => Readonly<Record<string, number | undefined>>
}

/** An action with its reported outcome. */
export interface Told {
  readonly action: Action
  /** `unknown` if it crashed or cannot know its outcome. */
  readonly outcome: 'committed' | 'refused' | 'repeated' | 'unknown'
  /** The values that it read, if it committed. */
  readonly read: ReadonlyMap<string, number> | undefined
}

/** Returns the state after an action alone, or undefined if that contradicts the reported outcome. */
function after(state: State, { action, outcome, read }: Told): State | undefined {
  const { keys, id, work } = action
  const mark = id === undefined ? undefined : `${keys[0]!}:${id}`
  const isRepeated = mark !== undefined && state.ids.has(mark)
  if (outcome === 'repeated') return isRepeated ? state : undefined
  if (isRepeated) return undefined
  const found = new Map([...state.values].filter(([key]) => keys.includes(key)))
  if (read && !sameValues(read, found)) return undefined
  const values = new Map(state.values)
  for (const [key, value] of Object.entries(work(found))) {
    if (value === undefined) values.delete(key)
    else values.set(key, value)
  }
  return { values, ids: mark === undefined ? state.ids : new Set([...state.ids, mark]) }
}

export function sameValues(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): boolean {
  return one.size === other.size && [...one].every(([key, value]) => other.get(key) === value)
}

/**
 * Whether the actions can have happened one after another, each as a whole. All committed actions happened, no refused
 * one did, and an unknown one may have. Of two holders of a key, the one with the smaller token came first.
 */
export function canHaveHappened(begin: State, end: State, told: readonly Told[]): boolean {
  const left = told.filter(({ outcome }) => outcome !== 'refused')
  return canEnd(begin, end, left, [])
}

function canEnd(state: State, end: State, left: readonly Told[], done: readonly Told[]): boolean {
  if (left.every(({ outcome }) => outcome === 'unknown') && isSame(state, end)) return true
  return left.some(next => {
    if (next.outcome !== 'repeated' && done.some(before => isOvertaken(before.action, next.action)))
      return false
    const then = after(state, next)
    const rest = left.filter(other => other !== next)
    // A repetition changes nothing, so it does not restrict the order of other actions.
    return then !== undefined && canEnd(then, end, rest, next.outcome === 'repeated' ? done : [...done, next])
  })
}

/** Whether a later holder of one of its keys came before it. */
function isOvertaken(before: Action, next: Action): boolean {
  return next.token > 0 && before.token > next.token && before.keys.some(key => next.keys.includes(key))
}

function isSame(one: State, other: State): boolean {
  return (
    sameValues(one.values, other.values) &&
    one.ids.size === other.ids.size &&
    [...one.ids].every(id => other.ids.has(id))
  )
}
