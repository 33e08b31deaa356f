/** How a poll stands. */
export interface PollState<Answer> {
  readonly answers: readonly Answer[]
  readonly failures: readonly Error[]
  readonly pending: number
  /** Whether those that have not answered take longer than they should. */
  readonly overdue: boolean
  /** Whether they have taken too long and are waited for no longer. */
  readonly over: boolean
}

/** When servers take longer than they should, and when they have taken too long: whoever is added is told. */
export interface Patience {
  hurry(task: () => void): void
  giveUp(task: () => void): void
}

/**
 * Follows what several servers were asked until it is plain what it comes to; those that have not answered by then are
 * waited for by nobody.
 * @param decide says what it comes to, or undefined while that is open
 * @param failed what to reject with when it stays open
 */
export function poll<Answer, Outcome>(
  asked: readonly Promise<Answer>[],
  patience: Patience,
  decide: (state: PollState<Answer>) => Outcome | undefined,
  failed: (state: PollState<Answer>) => Error,
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const answers: Answer[] = []
    const failures: Error[] = []
    let pending = asked.length
    let overdue = false
    let over = false
    let isOpen = true
    const weigh = (): void => {
      if (!isOpen) return
      const state = { answers, failures, pending, overdue, over }
      const outcome = decide(state)
      if (outcome === undefined && pending > 0 && !over) return
      isOpen = false
      if (outcome === undefined) reject(failed(state))
      else resolve(outcome)
    }
    for (const each of asked) {
      each.then(
        answer => {
          answers.push(answer)
          pending--
          weigh()
        },
        (error: unknown) => {
          failures.push(error as Error)
          pending--
          weigh()
        },
      )
    }
    weigh()
    if (!isOpen) return
    patience.hurry(() => {
      overdue = true
      weigh()
      if (!isOpen) return
      patience.giveUp(() => {
        over = true
        weigh()
      })
    })
  })
}
