use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Circle { radius: f64 },
    Rect { width: f64, height: f64 },
    Polygon(Vec<(f64, f64)>),
}

impl Shape {
    pub fn area(&self) -> f64 {
        match self {
            Shape::Circle { radius } => std::f64::consts::PI * radius * radius,
            Shape::Rect { width, height } => width * height,
            Shape::Polygon(points) => {
                let n = points.len();
                let sum: f64 = (0..n)
                    .map(|i| {
                        let (x1, y1) = points[i];
                        let (x2, y2) = points[(i + 1) % n];
                        x1 * y2 - x2 * y1
                    })
                    .sum();
                sum.abs() / 2.0
            }
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with area {:.3}", self, self.area())
    }
}

pub fn group_by_area(shapes: Vec<Shape>) -> BTreeMap<u64, Vec<Shape>> {
    let mut groups: BTreeMap<u64, Vec<Shape>> = BTreeMap::new();
    for shape in shapes {
        groups.entry(shape.area().round() as u64).or_default().push(shape);
    }
    groups
}
