import type { JSX } from 'preact'
import { printable } from 'signalbox/reports'
import { Empty, Heading } from '../page-kit/browser/parts.js'
import { count, timeOf } from '../page-kit/browser/text.js'
import type { StoreNames, ValuePage, ValueRow } from '../messages.js'
import { Cut } from './parts.js'
import { hashOf, type Route } from './route.js'
import { dateOf } from './text.js'
import { useAnswer, type Answer } from './use-answer.js'

type Properties = Omit<Extract<Route, { view: 'values' }>, 'view'>

/** The stores, or the values of one, page by page. */
export function ValuesView({ store, prefix, after }: Properties): JSX.Element {
  const [answer, ask] = useAnswer<ValuePage>('values', store === '' ? undefined : { store, prefix, after })
  return (
    <>
      <Heading>Values</Heading>
      <form
        class="lookup"
        onSubmit={event => {
          event.preventDefault()
          const [storeField, prefixField] = event.currentTarget.querySelectorAll('input')
          const [name, start] = [storeField!.value, prefixField!.value]
          const hash = hashOf({ view: 'values', store: name, prefix: start, after: '' })
          if (hash === location.hash) ask()
          else location.hash = hash
        }}
      >
        <label class="field">
          <span>Store</span>
          <input required maxLength={1024} defaultValue={store} autocomplete="off" spellcheck={false} />
        </label>
        <label class="field">
          <span>Keys that begin with</span>
          <input maxLength={1024} defaultValue={prefix} autocomplete="off" spellcheck={false} />
        </label>
        <button type="submit">List</button>
      </form>
      <div aria-live="polite">
        {store === '' ? (
          <Stores />
        ) : answer ? (
          <Page answer={answer} {...{ store, prefix, after }} />
        ) : (
          <Empty>Reading …</Empty>
        )}
      </div>
    </>
  )
}

function Stores(): JSX.Element {
  const [answer] = useAnswer<StoreNames>('stores', {})
  if (!answer) return <Empty>Reading …</Empty>
  if (answer.failure !== undefined) return <p class="failure">{answer.failure}</p>
  const { names, hasMore } = answer.content
  if (names.length === 0) return <Empty>No store has values.</Empty>
  return (
    <>
      <p class="summary">
        {count(names.length, 'store')}
        {hasMore && ', and there are more'}. Read at {timeOf(answer.at)}.
      </p>
      <table class="values">
        <thead>
          <tr>
            <th scope="col">Store</th>
          </tr>
        </thead>
        <tbody>
          {names.map(name => (
            <tr key={name}>
              <th scope="row">
                <a class="key" href={hashOf({ view: 'values', store: name, prefix: '', after: '' })}>
                  {printable(name)}
                </a>
              </th>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}

function Page({
  answer,
  store,
  prefix,
  after,
}: Properties & { readonly answer: Answer<ValuePage> }): JSX.Element {
  if (answer.failure !== undefined) return <p class="failure">{answer.failure}</p>
  const { rows, hasMore } = answer.content
  const hashAfter = (key: string): string => hashOf({ view: 'values', store, prefix, after: key })
  const knowsTimes = rows.some(row => row.failure === undefined && row.changed !== undefined)
  return (
    <>
      <p class="summary">
        {count(rows.length, 'value')}
        {after !== '' && ' after '}
        {after !== '' && <span class="key">{printable(after)}</span>}
        {hasMore && ', and there are more'}. Read at {timeOf(answer.at)}.
        {rows.length > 0 && !knowsTimes && ' The engine does not know when they were changed.'}
      </p>
      {rows.length === 0 ? (
        <Empty>
          {printable(store)} has no {after === '' ? '' : 'further '}values
          {prefix !== '' && ` whose keys begin with ${printable(prefix)}`}.
        </Empty>
      ) : (
        <table class="values">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">JSON</th>
              <th scope="col">Version</th>
              {knowsTimes && <th scope="col">Changed</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map(row => (
              <Row key={row.key} row={row} store={store} knowsTimes={knowsTimes} />
            ))}
          </tbody>
        </table>
      )}
      <p class="pages">
        {after !== '' && <a href={hashAfter('')}>First page</a>}
        {hasMore && <a href={hashAfter(rows.at(-1)!.key)}>Next page</a>}
      </p>
    </>
  )
}

interface RowProperties {
  readonly row: ValueRow
  readonly store: string
  readonly knowsTimes: boolean
}

function Row({ row, store, knowsTimes }: RowProperties): JSX.Element {
  const { key } = row
  return (
    <tr>
      <th scope="row">
        <a class="key" href={hashOf({ view: 'value', store, key })}>
          {printable(key)}
        </a>
      </th>
      {row.failure !== undefined ? (
        <td colSpan={knowsTimes ? 3 : 2} class="damaged">
          {printable(row.failure)}
        </td>
      ) : (
        <>
          <td class="json">
            {printable(row.json)}
            <Cut shown={row.json.length} length={row.length} />
          </td>
          <td class="number">
            <span class="unit">version </span>
            {row.version}
          </td>
          {knowsTimes && (
            <td class="number">
              <span class="unit">changed </span>
              {row.changed === undefined ? 'not known' : dateOf(row.changed)}
            </td>
          )}
        </>
      )}
    </tr>
  )
}
