import { postgres } from '../contract/postgres-fixture.js'
import { adverseSuite } from '../contract/suite.js'

adverseSuite(postgres)
