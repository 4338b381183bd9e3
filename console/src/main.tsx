import "./fonts.css";
import "./colours.css";
import "./style.css";
import "./controls.css";
import "./panes.css";
import "./pages.css";
import "./pictures.css";
import "./extra.css";
import { render } from "preact";
import { App } from "./app";
import { goOn } from "./player";
import { minimise } from "./solutions";
import { followAddress, poll, registered } from "./state";

followAddress();
render(<App />, document.getElementById("console")!);
poll();
minimise(() => registered.value);
void goOn();
