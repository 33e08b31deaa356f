import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Empty, Heading } from '../../page-kit/browser/parts.js'
import { timeOf } from '../../page-kit/browser/text.js'
import { RequestError } from '../../page-kit/browser/event-stream.js'
import { printable } from '../../printable.js'
import { useShared } from './context.js'
import { hashOf } from './route.js'

interface Properties {
  readonly store: string
  readonly name: string
}

type Answer =
  { readonly found: true; readonly version: number; readonly value: unknown } | { readonly found: false }

interface Result {
  readonly at: number
  readonly answer?: Answer
  readonly failure?: string
}

/** One value, looked up by its store and key. */
export function ValuesView({ store, name }: Properties): JSX.Element {
  const { connection } = useShared()
  const [result, setResult] = useState<Result>()
  const look = async (): Promise<void> => {
    setResult(undefined)
    try {
      const answer = (await connection.get('value', { store, key: name })) as Answer
      setResult({ at: Date.now(), answer })
    } catch (error) {
      setResult({ at: Date.now(), failure: error instanceof RequestError ? error.message : String(error) })
    }
  }
  useEffect(() => {
    if (store !== '') void look()
  }, [store, name])
  return (
    <>
      <Heading>Values</Heading>
      <p class="summary">Looks up one value by its store and key.</p>
      <form
        class="lookup"
        onSubmit={event => {
          event.preventDefault()
          const [storeField, keyField] = event.currentTarget.querySelectorAll('input')
          const hash = hashOf({ view: 'values', store: storeField!.value, key: keyField!.value })
          if (hash === location.hash) void look()
          else location.hash = hash
        }}
      >
        <label class="field">
          <span>Store</span>
          <input required maxLength={1024} defaultValue={store} autocomplete="off" spellcheck={false} />
        </label>
        <label class="field">
          <span>Key</span>
          <input required maxLength={1024} defaultValue={name} autocomplete="off" spellcheck={false} />
        </label>
        <button type="submit">Look up</button>
      </form>
      <div aria-live="polite">{result && <Shown result={result} store={store} name={name} />}</div>
    </>
  )
}

function Shown({ result, store, name }: Properties & { readonly result: Result }): JSX.Element {
  const { at, answer, failure } = result
  if (failure !== undefined) return <p class="failure">{failure}</p>
  if (!answer?.found)
    return (
      <Empty>
        {printable(store)} has no key {printable(name)}.
      </Empty>
    )
  return (
    <section class="card" aria-label="Value">
      <h2>
        <span class="key">{printable(name)}</span> <span class="mode">version {answer.version}</span>
      </h2>
      <pre tabIndex={0} aria-label="JSON">
        {JSON.stringify(answer.value, null, 2).split('\n').map(printable).join('\n')}
      </pre>
      <p class="hint">Read at {timeOf(at)}. It does not follow later changes.</p>
    </section>
  )
}
