import type { JSX } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { RequestError } from '../page-kit/browser/event-stream.js'
import type { Proposal } from './context.js'

interface Properties {
  readonly proposal: Proposal
  readonly losses: readonly string[]
  /** Closes the dialog. @param done description of the result; undefined if nothing was done. */
  readonly close: (done?: string) => void
}

/** Asks the user to confirm an action, and lists the losses that it will cause. */
export function Dialog({ proposal, losses, close }: Properties): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<string>()
  useLayoutEffect(() => dialog.current!.showModal(), [])
  const act = async (): Promise<void> => {
    setBusy(true)
    try {
      const done = await proposal.act()
      close(done)
    } catch (error) {
      setFailure(error instanceof RequestError ? error.message : String(error))
      setBusy(false)
    }
  }
  return (
    <dialog ref={dialog} aria-labelledby="question" aria-describedby="losses" onClose={() => close()}>
      <h2 id="question">{proposal.title}</h2>
      <ul id="losses">
        {losses.map(loss => (
          <li key={loss}>{loss}</li>
        ))}
      </ul>
      {failure !== undefined && (
        <p class="failure" role="alert">
          {failure}
        </p>
      )}
      <div class="buttons">
        <button type="button" autofocus onClick={() => dialog.current!.close()}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={isBusy} onClick={() => void act()}>
          {proposal.verb}
        </button>
      </div>
    </dialog>
  )
}
